"""What every stage of one rollout shares, and the verdicts it has already paid for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rsi.errors import SandboxFailure
from rsi.helix.allowance import Allowance, MeteredSandbox
from rsi.ports import Completed, Execution, LanguageModel, Sandbox
from rsi.prism.cell import run_cell
from rsi.prism.outcome import State, Verdict
from rsi.prism.suite import Suite
from rsi.prism.task import Task
from rsi.prism.tree import Tree
from rsi.records import Workflow
from rsi.strategy import Strategy

T = TypeVar("T")


@dataclass
class Job:
    """One task under one strategy: models by slot, the sandbox, the caps and the seed."""

    task: Task
    strategy: Strategy
    workflow: Workflow
    models: Sequence[LanguageModel]
    sandbox: Sandbox
    allowance: Allowance
    seed: int
    _verdicts: dict[tuple[str, str, int], Verdict] = field(default_factory=dict)
    _locks: dict[tuple[str, str, int], asyncio.Lock] = field(default_factory=dict)

    def model(self, slot: int) -> LanguageModel:
        """The model that serves a slot; slots beyond the list start again at its head."""
        return self.models[slot % len(self.models)]

    async def run(self, owner: str, execution: Execution) -> Completed:
        """Run a command in the sandbox within the caps, off the event loop."""
        metered = MeteredSandbox(self.sandbox, self.allowance, owner)
        return await asyncio.to_thread(metered.run, execution)

    async def judge(self, owner: str, suite: Suite, program: Tree, repetition: int = 0) -> Verdict:
        """Verdict of a suite on a program the agents know; equal cells run once a repetition.

        Raises LimitReached without room and SandboxFailure when the cell could not be observed:
        a broken sandbox must not look like a bad suite.
        """
        key = (suite.digest, program.digest, repetition)
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key not in self._verdicts:
                metered = MeteredSandbox(self.sandbox, self.allowance, owner)
                verdict = await asyncio.to_thread(
                    run_cell, metered, suite, program, self.task.limits
                )
                if verdict.state is State.INFRA:
                    raise SandboxFailure(f"{self.task.task_id}: {verdict.detail}")
                self._verdicts[key] = verdict
            return self._verdicts[key]


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Await all at once, in order; the first error cancels the rest and is raised as it was."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(item) for item in work]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
