"""Fakes that users may build on: a scripted model, an instant sandbox, a tripwire for paid work."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from rsi.budget import Spend
from rsi.ports import Completed, Execution, Isolation, ModelReply, ModelRequest, ToolCall
from rsi.records import Rollout, RolloutRequest

Scripted = ModelReply | Exception | Callable[[ModelRequest], ModelReply]


def says(text: str = "", *calls: ToolCall, finish_reason: str = "stop") -> ModelReply:
    """Build a reply with text and tool calls; its spend is filled in by ScriptedModel."""
    return ModelReply(text=text, tool_calls=calls, finish_reason=finish_reason)


def calls(name: str, **arguments: str) -> ModelReply:
    """Build a reply that calls one tool natively."""
    return says("", ToolCall(call_id=f"call-{name}", name=name, arguments=json.dumps(arguments)))


class Tripwire:
    """Raises AssertionError when the same piece of paid work is done a second time."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self._lock = threading.Lock()

    def pay(self, key: str) -> None:
        """Note one piece of work by its key."""
        with self._lock:
            if key in self.paid:
                raise AssertionError(f"paid twice: {key}")
            self.paid.append(key)


@dataclass
class ScriptedModel:
    """A language model that gives its replies in order and then repeats `after`.

    A reply may be an exception, which is raised, or a function of the request. Tokens are
    counted as characters / `chars_a_token`; output tokens never pass the request's ceiling.
    `delay_s` makes calls overlap.
    """

    replies: Iterable[Scripted] = ()
    native_tools: bool = True
    after: Scripted = field(default_factory=lambda: calls("submit"))
    chars_a_token: int = 4
    delay_s: float = 0.0
    requests: list[ModelRequest] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._left = iter(self.replies)

    def count_tokens(self, request: ModelRequest) -> int:
        size = sum(
            len(m.content) + sum(len(c.name) + len(c.arguments) for c in m.tool_calls)
            for m in request.messages
        )
        return size // self.chars_a_token + 1

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        await asyncio.sleep(self.delay_s)
        scripted = next(self._left, self.after)
        if isinstance(scripted, Exception):
            raise scripted
        reply = scripted if isinstance(scripted, ModelReply) else scripted(request)
        if reply.spend != Spend():
            return reply
        written = len(reply.text) + sum(len(c.arguments) for c in reply.tool_calls)
        spend = Spend(
            model_calls=1,
            input_tokens=self.count_tokens(request),
            output_tokens=min(written // self.chars_a_token + 1, request.max_output_tokens),
        )
        return reply.updated(spend=spend)


Decision = int | Completed | Exception


@dataclass
class InstantSandbox:
    """A sandbox that runs nothing: `decide` gives the exit code, what was seen, or an error.

    With `tripwire`, the same execution may be run only once.
    """

    decide: Callable[[Execution], Decision]
    isolation: Isolation = "process"
    tripwire: Tripwire | None = None
    executions: list[Execution] = field(default_factory=list)

    def run(self, execution: Execution) -> Completed:
        self.executions.append(execution)
        if self.tripwire is not None:
            self.tripwire.pay(execution.model_dump_json())
        decision = self.decide(execution)
        if isinstance(decision, Exception):
            raise decision
        if isinstance(decision, Completed):
            return decision
        return Completed(
            exit_code=decision,
            wall_seconds=0.01,
            isolation=self.isolation,
            tree=execution.program if execution.collect else None,
        )


@dataclass
class InstantEvaluator:
    """An evaluator that plays rollouts by a function; the same rollout may be paid only once."""

    play: Callable[[RolloutRequest], Rollout]
    tripwire: Tripwire = field(default_factory=Tripwire)

    def evaluate(self, requests: Sequence[RolloutRequest]) -> list[Rollout]:
        for request in requests:
            self.tripwire.pay(request.rollout_id)
        return [self.play(request) for request in requests]
