"""From rollouts to figures: what the closing tables, summaries and frozen files quote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rsi.budget import Spend
from rsi.prism.metrics import compare, score, states
from rsi.prism.outcome import Outcome
from rsi.prism.task import Task
from rsi.records import Rollout, RolloutRequest, Scope
from rsi.strategy import Strategy


def requests_for(
    strategy: Strategy, tasks: Sequence[Task], name: str, repetitions: int, scope: Scope
) -> list[RolloutRequest]:
    """One request per task and repetition; `name` tells this use apart from all others."""
    return [
        RolloutRequest(
            strategy=strategy, task_id=task.task_id, repetition=f"{name}-{i}", scope=scope
        )
        for i in range(1, repetitions + 1)
        for task in tasks
    ]


def outcomes_of(rollouts: Iterable[Rollout]) -> list[Outcome]:
    """The outcomes that exist; a rollout that the world failed has none."""
    return [r.outcome for r in rollouts if r.outcome is not None]


def figures(rollouts: Sequence[Rollout]) -> dict[str, Any]:
    """Scores with intervals, cell states, failure labels, isolation and spend, as JSON."""
    outcomes = outcomes_of(rollouts)
    scores = {
        name: {**found.to_json(), "total": len(rollouts), "text": str(found)}
        for name, found in score(outcomes).items()
    }
    return {
        "scores": scores,
        "states": states(outcomes),
        "labels": dict(Counter(r.label for r in rollouts if r.label)),
        "rollouts": len(rollouts),
        "infrastructureFailures": sum(bool(r.failure) for r in rollouts),
        "isolation": sorted({r.isolation for r in rollouts}),
        "spend": total_spend(rollouts).to_json(),
    }


def difference(before: Sequence[Rollout], after: Sequence[Rollout], name: str) -> dict[str, Any]:
    """The paired difference after - before on tasks that both completed, as JSON."""
    found = {o.task_id for o in outcomes_of(before) if o.complete}
    both = found & {o.task_id for o in outcomes_of(after) if o.complete}
    if not both:
        return {"name": name, "tasks": 0}
    return compare(
        [o for o in outcomes_of(before) if o.task_id in both],
        [o for o in outcomes_of(after) if o.task_id in both],
        name,
    ).to_json()


def total_spend(rollouts: Iterable[Rollout]) -> Spend:
    """Sum what rollouts spent."""
    total = Spend()
    for rollout in rollouts:
        total = total + rollout.spend
    return total
