"""A small world for the search: an evaluator with known success rates, and a ledger in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from evolution.candidate import Candidate
from evolution.plan import EvolutionPlan
from rsi.digest import seed_of
from rsi.errors import LimitReached
from rsi.prism.outcome import CellResult, Outcome, Reason, State, Verdict
from rsi.records import Rollout, RolloutRequest
from rsi.strategy import Strategy
from rsi.trajectory import Symptoms

ACCEPT = Verdict(state=State.ACCEPT, isolation="process")
REJECT = Verdict(state=State.REJECT, reason=Reason.ASSERTION, isolation="process")


class Interrupted(BaseException):
    """The process dies here."""


def tasks(prefix: str, count: int, families: int = 3) -> tuple[tuple[str, str], ...]:
    return tuple((f"{prefix}-{n:03d}", f"family{n % families}") for n in range(count))


def outcome(task_id: str, right: bool, family: str = "f") -> Outcome:
    return Outcome(
        task_id=task_id,
        family=family,
        source="made",
        suite_digest="0" * 64,
        cells=(
            CellResult(implementation_id="b", kind="initial", verdict=REJECT),
            CellResult(
                implementation_id="g", kind="reference", verdict=ACCEPT if right else REJECT
            ),
        ),
    )


def rollout(request: RolloutRequest, right: bool | None, family: str = "f", **more: Any) -> Rollout:
    """A rollout that succeeded, failed, or (None) was lost by the world."""
    return Rollout(
        rollout_id=request.rollout_id,
        strategy_id=request.strategy.strategy_id,
        task_id=request.task_id,
        family=family,
        source="made",
        scope=request.scope,
        outcome=None if right is None else outcome(request.task_id, right, family),
        failure="the sandbox is gone" if right is None else "",
        isolation="process",
        **{"label": "" if right else "missed_input", **more},
    )


def step_hungry(strategy: Strategy) -> float:
    """Much better with more steps: 0.2 at 10 or fewer, 0.9 from 15."""
    return 0.2 if strategy.agent_steps <= 10 else 0.9 if strategy.agent_steps >= 15 else 0.5


def indifferent(_strategy: Strategy) -> float:
    return 0.5


class FakeEvaluator:
    """Draws outcomes by a seeded rate, pays every rollout once and keeps it in `journal`."""

    def __init__(
        self,
        rate: Callable[[Strategy], float] = step_hungry,
        *,
        budget: int = 10**9,
        lost: float = 0.0,
        seed: int = 0,
        journal: dict[str, Rollout] | None = None,
        die_after: int = 10**9,
    ) -> None:
        self.rate, self.budget, self.lost, self.seed = rate, budget, lost, seed
        self.journal = {} if journal is None else journal
        self.calls: list[list[RolloutRequest]] = []
        self.paid = 0
        self.die_after = die_after

    def evaluate(self, requests: Sequence[RolloutRequest]) -> list[Rollout]:
        self.calls.append(list(requests))
        assert len({r.rollout_id for r in requests}) == len(requests), "asked twice in one call"
        return [self._answer(request) for request in requests]

    def requests(self, mark: str) -> list[RolloutRequest]:
        """All requests whose repetition ends with a mark."""
        return [r for call in self.calls for r in call if r.repetition.endswith(mark)]

    def _answer(self, request: RolloutRequest) -> Rollout:
        if request.rollout_id in self.journal:
            return self.journal[request.rollout_id]
        if len(self.journal) >= self.budget:
            raise LimitReached("rollouts")
        if self.paid >= self.die_after:
            raise Interrupted
        rng = Random(seed_of(self.seed, request.rollout_id))
        lost, right = rng.random() < self.lost, rng.random() < self.rate(request.strategy)
        exhausted = int(not right and request.strategy.agent_steps < 15)
        made = rollout(
            request, None if lost else right, symptoms=Symptoms(steps_exhausted=exhausted)
        )
        self.paid += 1
        self.journal[request.rollout_id] = made
        return made


class MemoryLedger:
    """Keeps events as JSON text; dies instead of writing event number `stop_at`."""

    def __init__(self, stop_at: int = 10**9, lines: list[tuple[str, str, str]] | None = None):
        self.lines = [] if lines is None else lines
        self.stop_at = stop_at

    def once(self, kind: str, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        for known_kind, known_key, line in self.lines:
            if (known_kind, known_key) == (kind, key):
                return json.loads(line)
        line = json.dumps(make(), allow_nan=False)
        if len(self.lines) >= self.stop_at:
            raise Interrupted
        self.lines.append((kind, key, line))
        return json.loads(line)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [json.loads(line) for known, _, line in self.lines if known == kind]


def small_plan(**changes: Any) -> EvolutionPlan:
    values = {
        "generations": 2,
        "children": 3,
        "tasks_per_generation": 8,
        "promotion_tasks": 12,
        "trace_tasks": 3,
        "selection_tasks": 6,
        **changes,
    }
    return EvolutionPlan(**values)


SPLITS = {"train": tasks("train", 30), "selection": tasks("selection", 8), "test": tasks("test", 5)}


def candidate(candidate_id: str = "g1-c1", **changes: Any) -> Candidate:
    values = {
        "strategy": Strategy(),
        "parent_ids": ("seed",),
        "generation": 1,
        "proposer": "random",
    }
    return Candidate(candidate_id=candidate_id, **{**values, **changes})
