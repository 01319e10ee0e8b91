"""One agent: a conversation about a workspace of its own, one step a model reply."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from rsi.digest import seed_of
from rsi.errors import LimitReached, ModelUnavailable, SandboxFailure
from rsi.helix.context import Entry, Part, fit
from rsi.helix.job import Job
from rsi.helix.protocol import answered, calls_of, spoken
from rsi.helix.tools import (
    Call,
    Malformed,
    execution_of,
    list_files,
    parse_call,
    read_file,
    report_of,
    tidy,
    tool_lines,
    tool_schemas,
    write_file,
)
from rsi.helix.wording import STYLES, clean, cut, render
from rsi.ports import LanguageModel, Message, ModelReply, ModelRequest, ToolCall
from rsi.prism.tree import Tree
from rsi.trajectory import Step, StopReason, Symptoms, Trajectory

Kind = Literal["act", "repair", "revise"]
# tokens one reply may have; a cap below it lowers it
REPLY_TOKENS = 4_096
SILENT_REPLIES = 2
INFRA_RETRIES = 2
_NO_CALL = "there was no tool call in the reply; call a tool, or `submit` when the work is done"
_CUT_OFF = "the reply was cut off at the output limit; write smaller pieces"
_NOT_RUN = "not carried out: the conversation had moved on"

# of one reply; the rest is not run, so that a reply cannot stand for any number of steps
MAX_CALLS = 8


class Stopped(Exception):
    """The agent's turn is over for this reason."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class Agent:
    """An isolated agent in one slot; `workspace` is the program with the suite below it."""

    job: Job
    slot: int
    workspace: Tree = field(init=False)
    stop_reason: StopReason = "steps"
    stopped_by: str = ""
    _entries: list[Entry] = field(default_factory=list)
    _steps: list[Step] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)
    _silent: int = 0

    def __post_init__(self) -> None:
        self.workspace = self.job.task.program
        self._say("fixed", Message(role="system", content=self._system()))

    @property
    def name(self) -> str:
        return f"agent-{self.slot + 1}"

    @property
    def model(self) -> LanguageModel:
        return self.job.model(self.slot)

    async def run(self, kind: Kind, opening: str, most: int) -> int:
        """Take at most `most` steps after an opening message and tell how many it took.

        Every limit ends here as a stop reason; ModelRefused is raised, no step can mend it.
        """
        before = len(self._steps)
        self._say("fixed" if kind == "act" else "turn", Message(role="user", content=opening))
        self.stop_reason, self.stopped_by, self._silent = "steps", "", 0
        try:
            for _ in range(most):
                await self._step(kind)
            self._counts["steps_exhausted"] += kind == "act"
        except Stopped as stop:
            self.stop_reason = stop.reason
        except LimitReached as reached:
            self.stop_reason, self.stopped_by = "cap", reached.limit
        except ModelUnavailable as error:
            self.stop_reason, self.stopped_by = "model_failure", clean(str(error))[:200]
        except SandboxFailure as error:
            self.stop_reason, self.stopped_by = "infrastructure", clean(str(error))[:200]
        return len(self._steps) - before

    def count(self, symptom: str) -> None:
        """Note a symptom that only the caller can see."""
        self._counts[symptom] += 1

    def trajectory(self) -> Trajectory:
        """What this agent did so far."""
        return Trajectory(
            agent=self.name,
            steps=tuple(self._steps),
            stop_reason=self.stop_reason,
            stopped_by=self.stopped_by,
            symptoms=Symptoms(**self._counts),
            spend=self.job.allowance.spend(self.name),
        )

    async def _step(self, kind: Kind) -> None:
        await self._execute(kind, await self._query())

    async def _query(self) -> ModelReply:
        caps = self.job.allowance.caps
        tools = tool_schemas() if self.model.native_tools else ()
        blank = ModelRequest(
            messages=(),
            tools=tools,
            max_output_tokens=min(REPLY_TOKENS, caps.output_tokens),
            seed=seed_of(self.job.seed, self.slot, len(self._steps)),
        )
        messages, tokens, elided = fit(
            self._entries,
            lambda some: self.model.count_tokens(blank.model_copy(update={"messages": some})),
            self.job.strategy.context_tokens,
        )
        self._counts["context_elided"] += elided
        request = blank.model_copy(update={"messages": messages})
        return await self.job.allowance.complete(self.name, self.model, request, tokens)

    async def _execute(self, kind: Kind, reply: ModelReply) -> None:
        native = self.model.native_tools
        calls = calls_of(reply, native)[:MAX_CALLS]
        self._say("assistant", spoken(reply, calls, native))
        if not calls:
            self._no_call(kind, reply)
            return
        self._silent = 0
        results: list[str] = []
        try:
            for call in calls:
                results.append(await self._answer(call, reply))
        except (LimitReached, SandboxFailure, Stopped) as end:
            results.append("submitted" if isinstance(end, Stopped) else _NOT_RUN)
            raise
        finally:
            results += [_NOT_RUN] * (len(calls) - len(results))
            for call, result in zip(calls, results, strict=True):
                self._say("tool", answered(call, result, native))
            self._record(kind, reply, calls, "\n".join(results))

    def _no_call(self, kind: Kind, reply: ModelReply) -> None:
        cut_off = reply.finish_reason == "length"
        answer = _CUT_OFF if cut_off else _NO_CALL
        self._counts["malformed_replies"] += 1
        self._say("turn", Message(role="user", content=answer))
        self._record(kind, reply, (), answer)
        self._silent = 0 if cut_off else self._silent + 1
        if self._silent >= SILENT_REPLIES:
            raise Stopped("no_tool_call")

    async def _answer(self, call: ToolCall, reply: ModelReply) -> str:
        """Carry out one call; the result is cut as the strategy says."""
        try:
            text = await self._carry_out(parse_call(call))
        except Malformed as error:
            self._counts["malformed_replies"] += 1
            hint = f"; {_CUT_OFF}" if reply.finish_reason == "length" else ""
            text = f"error: {error}{hint}"
        kept, was_cut = cut(text, self.job.strategy.tool_output_chars)
        self._counts["tool_output_cut"] += was_cut
        return kept

    async def _carry_out(self, call: Call) -> str:
        given = call.arguments
        if call.name == "submit":
            raise Stopped("submitted")
        if call.name == "list_files":
            return list_files(self.workspace, given.get("path", ""))
        if call.name == "read_file":
            return read_file(self.workspace, given["path"])
        if call.name == "write_file":
            self.workspace = write_file(self.workspace, given["path"], given["content"])
            return f"written: {given['path']}"
        return await self._run_command(given["command"])

    async def _run_command(self, command: str) -> str:
        task = self.job.task
        execution = execution_of(task, self.workspace, command, task.limits)
        for retries_left in reversed(range(1 + INFRA_RETRIES)):
            try:
                done = await self.job.run(self.name, execution)
                break
            except SandboxFailure:
                if not retries_left:
                    raise
        if done.tree is not None:
            self.workspace = tidy(done.tree)
        return report_of(done)

    def _say(self, part: Part, message: Message) -> None:
        self._entries.append(Entry(part, message))

    def _record(
        self, kind: Kind, reply: ModelReply, calls: tuple[ToolCall, ...], observation: str
    ) -> None:
        most = self.job.strategy.tool_output_chars
        self._steps.append(
            Step(
                kind=kind,
                said=cut(clean(reply.text), most)[0],
                tool=", ".join(clean(call.name)[:40] for call in calls),
                arguments=cut(clean("\n".join(call.arguments for call in calls)), most)[0],
                observation=observation,
                finish_reason=clean(reply.finish_reason)[:40],
                spend=reply.spend,
            )
        )

    def _system(self) -> str:
        task, strategy = self.job.task, self.job.strategy
        return render(
            "system",
            name=self.name,
            style=STYLES[self.slot % len(STYLES)],
            folder=task.artifact_dir,
            entry=task.entry,
            text_tools=[] if self.model.native_tools else tool_lines(),
            guidance=strategy.synthesis_guidance,
            lessons=strategy.lessons,
        )


def opening_of(job: Job) -> str:
    """The message that starts every agent: the requirement and the names of the files."""
    task = job.task
    return render(
        "task",
        instruction=task.instruction,
        language=task.language,
        paths=sorted(task.program.files),
    )
