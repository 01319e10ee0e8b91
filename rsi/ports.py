"""What the workflow needs of the world: a language model and a sandbox."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from pydantic import Field

from rsi.budget import Spend
from rsi.prism.task import Limits
from rsi.prism.tree import Tree
from rsi.wire import Record

Isolation = Literal["bubblewrap", "docker", "process"]


class ToolCall(Record):
    """One tool call as the model wrote it; `arguments` is text that may not be JSON."""

    call_id: str
    name: str
    arguments: str


class Message(Record):
    """One chat message; `tool_call_id` ties a tool result to its call."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


class ModelRequest(Record):
    """One chat completion: messages, tools in the OpenAI function schema, output ceiling, seed."""

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    max_output_tokens: int = Field(1_024, ge=1)
    seed: int = 0


class ModelReply(Record):
    """What the model answered; an empty reply is data, not an error.

    `spend` holds calls, tokens and dollars; `usage_estimated` says that the endpoint gave none.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    spend: Spend = Spend()
    usage_estimated: bool = False


class LanguageModel(Protocol):
    """A chat model with a fixed profile (name, temperature, prices).

    `complete` raises ModelRefused for good, ModelUnavailable after its own retries.
    """

    @property
    def native_tools(self) -> bool: ...

    def count_tokens(self, request: ModelRequest) -> int: ...

    async def complete(self, request: ModelRequest) -> ModelReply: ...


class Execution(Record):
    """One command on one program tree in a fresh environment.

    The program is copied to the working directory, always at the same path and writable;
    the submission, when there is one, is mounted read-only and named by TP_SUBMISSION.
    `argv[0]` is a path inside the submission when `entry_in_submission`, else a command.
    `collect` asks for the work tree back after everything in the sandbox is dead.
    """

    program: Tree
    submission: Tree | None = None
    argv: tuple[str, ...] = Field(min_length=1)
    entry_in_submission: bool = False
    limits: Limits = Limits()
    environment: dict[str, str] = Field(default_factory=dict)
    collect: bool = False


KilledBy = Literal["wall", "cpu", "memory", "processes", "disk", "output"]


class Completed(Record):
    """What the host saw of an execution; never anything the program printed about itself.

    `exit_code` is None when the command ended by `signal`; `killed_by` names the limit for which
    we killed it; `started` is False when the command could not be executed at all;
    `changed` lists program files that differ afterwards; `stdout` and `stderr` keep head and
    tail; `tree` is the collected work tree. Seconds are wall and CPU time.
    """

    exit_code: int | None
    signal: int | None = None
    killed_by: KilledBy | None = None
    started: bool = True
    stdout: bytes = b""
    stderr: bytes = b""
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    changed: tuple[str, ...] = ()
    tree: Tree | None = None
    isolation: Isolation


class Sandbox(Protocol):
    """Runs hostile code; `run` blocks its thread and raises SandboxFailure when it cannot tell."""

    @property
    def isolation(self) -> Isolation: ...

    def run(self, execution: Execution) -> Completed: ...
