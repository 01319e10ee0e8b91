"""Finalists on the selection split, and the one-standard-error rule that names the winner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from evolution.candidate import Candidate
from evolution.edits import changed_fields
from evolution.sampling import balanced_order
from evolution.search import Player, Search, State, outcomes_of, play
from evolution.statistics import Outcomes, standard_error
from rsi.prism.metrics import Interval, wilson
from rsi.wire import Record

# one discordant task puts a difference exactly at its standard error: rounding must not decide
ROUNDING = 1e-9


class Standing(Record):
    """A finalist's result on the selection split, in the order of preference.

    `behind` is how much the best finalist leads it by on shared tasks, `standard_error` that
    difference's; `eligible` when it is within one standard error of the best.
    """

    candidate_id: str
    strategy_id: str
    tasks: int = Field(ge=0)
    rar: float | None
    interval: Interval | None
    behind: float | None
    standard_error: float | None
    eligible: bool


def finalists(state: State, count: int) -> tuple[Candidate, ...]:
    """The incumbent, the seed, and the best screened that look better than the seed.

    In the order of preference: the incumbent first, since promotion is the stricter test, then
    earlier generations, then fewer fields changed.
    """
    seed = state.archive.candidates[0]
    chosen = {c.candidate_id: c for c in (state.incumbent, seed)}
    for candidate in state.archive.ranked():
        if len(chosen) < count and state.archive.gain(candidate.candidate_id) > 0:
            chosen.setdefault(candidate.candidate_id, candidate)
    return tuple(
        sorted(
            chosen.values(),
            key=lambda c: (
                c.candidate_id != state.incumbent.candidate_id,
                c.generation,
                len(changed_fields(seed.strategy, c.strategy)),
            ),
        )
    )


def select(search: Search, state: State) -> tuple[Standing, ...]:
    """Play the finalists afresh on selection tasks and record how they stand.

    Empty without selection tasks, or when no other candidate looks better than the seed.
    """
    chosen = finalists(state, search.plan.finalists)
    order = balanced_order(search.selection, search.rng_seed, "selection")
    tasks = order[: search.plan.selection_tasks or None]
    if len(chosen) < 2 or not tasks:
        return ()
    players = [Player(c, "selection") for c in chosen]
    played = play(search.world, players, tasks, "selection")
    outcomes = {name: outcomes_of(rollouts) for name, rollouts in played.items()}
    rows = standings(chosen, outcomes)
    recorded = search.world.ledger.once(
        "selection",
        "selection",
        lambda: {"taskIds": sorted(t for t, _ in tasks), "finalists": [r.to_json() for r in rows]},
    )
    search.tell("select", search.plan.generations, f"{len(rows)} finalists, {len(tasks)} tasks")
    return tuple(Standing.model_validate(row) for row in recorded["finalists"])


def standings(
    chosen: Sequence[Candidate], outcomes: Mapping[str, Outcomes]
) -> tuple[Standing, ...]:
    """Measure each finalist against the best; ties go to the preferred one."""
    rates = {c.candidate_id: _rate(outcomes[c.candidate_id]) for c in chosen}
    measured = [c.candidate_id for c in chosen if rates[c.candidate_id] is not None]
    best = max(measured, key=lambda name: rates[name] or 0.0)
    return tuple(_standing(c, outcomes[c.candidate_id], outcomes[best]) for c in chosen)


def winner_of(rows: Sequence[Standing], incumbent: Candidate) -> tuple[str, str]:
    """Name the winner and why: the preferred finalist within one standard error of the best."""
    for row in rows:
        if row.eligible:
            return row.candidate_id, "within one standard error of the best on selection tasks"
    return incumbent.candidate_id, "the incumbent; no selection was made"


def _standing(candidate: Candidate, own: Outcomes, best: Outcomes) -> Standing:
    known = [value for value in own.values() if value is not None]
    differences = [
        float(best_value - own_value)
        for task_id, own_value in own.items()
        if own_value is not None and (best_value := best[task_id]) is not None
    ]
    behind = sum(differences) / len(differences) if differences else None
    error = standard_error(differences) if differences else None
    return Standing(
        candidate_id=candidate.candidate_id,
        strategy_id=candidate.strategy_id,
        tasks=len(known),
        rar=_rate(own),
        interval=wilson(sum(known), len(known)) if known else None,
        behind=behind,
        standard_error=error,
        eligible=behind is not None and error is not None and behind <= error + ROUNDING,
    )


def _rate(outcomes: Outcomes) -> float | None:
    known = [value for value in outcomes.values() if value is not None]
    return sum(known) / len(known) if known else None
