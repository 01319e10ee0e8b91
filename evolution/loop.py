"""The search: one loop over generations, and a winner at its end.

Everything is a function of plan, seed and recorded results. Resuming is the same call again:
the evaluator answers finished rollouts from the journal, the ledger every recorded decision.
What the events hold is told in docs/events.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evolution.archive import Archive
from evolution.breeding import breed, trace
from evolution.candidate import Candidate
from evolution.comparing import Screened, promote, reflect, screen
from evolution.lessons import Lesson, active
from evolution.parents import choose_parent
from evolution.plan import EvolutionPlan
from evolution.promotion import Decision
from evolution.proposers import Credit, credits_of
from evolution.sampling import Listed
from evolution.search import Search, State, World, prepare, start
from evolution.selection import Standing, select, winner_of
from rsi.errors import LimitReached
from rsi.strategy import Strategy


@dataclass(frozen=True)
class Result:
    """How a search ended; `stopped_by` names the ceiling that ended it early, else empty."""

    winner: Candidate
    incumbent: Candidate
    archive: Archive
    lessons: tuple[Lesson, ...]
    selection: tuple[Standing, ...]
    promoted: tuple[str, ...]
    credit: Mapping[str, Credit]
    stopped_by: str = ""


def evolve(
    plan: EvolutionPlan,
    seed_strategy: Strategy,
    tasks: Mapping[str, Sequence[Listed]],
    world: World,
    rng_seed: int = 0,
) -> Result:
    """Search from a seed strategy; `tasks` maps a split to its (task_id, family) pairs.

    Uses the `train` and `selection` splits only. A budget that ends is an ordinary end: the
    search finishes with what it has. Raises SettingsError for splits that cannot carry the
    plan, InfrastructureError when a whole batch of rollouts fails.
    """
    search = prepare(plan, tasks, world, rng_seed)
    state = start(plan, seed_strategy)
    stopped_by = ""
    world.ledger.once("candidate", state.incumbent.candidate_id, state.incumbent.event)
    for number in range(1, plan.generations + 1):
        try:
            parent = choose_parent(state.archive, plan.parents_from, search.rng("parent", number))
            evidence = trace(search, state, number, parent)
            state, children = breed(search, state, number, parent, evidence)
            state, screened = screen(search, state, number, parent, children)
            state, decision = promote(search, state, number, screened)
            state = reflect(search, state, parent, children, screened)
            record_generation(search, state, number, parent, screened, decision)
        except LimitReached as reached:
            stopped_by = reached.limit
            search.tell("stopped", number, f"the budget has no room for more: {stopped_by}")
            break
    return finish(search, state, stopped_by)


def finish(search: Search, state: State, stopped_by: str) -> Result:
    """Play the finalists if the budget allows, and name the winner once."""
    rows: tuple[Standing, ...] = ()
    try:
        rows = select(search, state)
    except LimitReached as reached:
        stopped_by = stopped_by or reached.limit
        search.tell("stopped", search.plan.generations, f"no room for the selection: {stopped_by}")
    candidate_id, reason = winner_of(rows, state.incumbent)
    event = winner_event(state.archive, candidate_id, reason, stopped_by)
    recorded = search.world.ledger.once("winner", "winner", lambda: event)
    winner = state.archive.get(recorded["candidateId"])
    search.tell("winner", search.plan.generations, f"{winner.candidate_id}: {recorded['reason']}")
    return Result(
        winner=winner,
        incumbent=state.incumbent,
        archive=state.archive,
        lessons=state.lessons,
        selection=rows,
        promoted=state.promoted,
        credit=credits_of(state.archive, search.plan.proposers),
        stopped_by=recorded["stoppedBy"],
    )


def record_generation(
    search: Search,
    state: State,
    number: int,
    parent: Candidate,
    screened: Screened,
    decision: Decision | None,
) -> None:
    """Record where the search stands after a generation (`generation` event)."""
    best = max(screened.comparisons.values(), key=lambda c: c.difference, default=None)
    credit = credits_of(state.archive, search.plan.proposers)
    event: dict[str, Any] = {
        "number": number,
        "incumbentId": state.incumbent.candidate_id,
        "parentId": parent.candidate_id,
        "candidateIds": [c.candidate_id for c in screened.candidates],
        "bestId": best.candidate_id if best else None,
        "rar": best.rar if best else None,
        "interval": best.rar_interval.to_json() if best and best.rar_interval else None,
        "difference": best.difference if best else None,
        "baselineRar": best.baseline_rar if best else None,
        "promotedIds": list(state.promoted),
        "alphaSpent": decision.alpha if decision else 0.0,
        "alphaLeft": state.alpha_left,
        "credit": {name: c.to_json() for name, c in credit.items()},
        "lessons": [lesson.statement for lesson in active(state.lessons)],
    }
    search.world.ledger.once("generation", f"g{number}", lambda: event)


def winner_event(
    archive: Archive, candidate_id: str, reason: str, stopped_by: str
) -> dict[str, Any]:
    """The data of the `winner` event."""
    winner = archive.get(candidate_id)
    return {
        "candidateId": candidate_id,
        "strategyId": winner.strategy_id,
        "strategy": winner.strategy.to_json(),
        "lineage": list(archive.lineage(candidate_id)),
        "reason": reason,
        "stoppedBy": stopped_by,
    }
