"""Screen loosely, promote strictly, and learn from the difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import Field

from evolution.archive import Observation, Stage
from evolution.candidate import Candidate
from evolution.lessons import learn, lesson_event, regression_map
from evolution.promotion import Decision, declined
from evolution.sampling import balanced_order, promotion_tasks, screening_tasks
from evolution.search import Player, Search, State, outcomes_of, play
from evolution.statistics import Outcomes, pair, paired_interval, sign_test
from rsi.prism.metrics import Interval, wilson
from rsi.wire import Record


class Comparison(Record):
    """A candidate beside the incumbent on the same tasks: descriptive, no error is claimed.

    `rar` and `baseline_rar` are over tasks that both sides finished, None without any;
    `p_value` is one-sided and not adjusted for the number of candidates.
    """

    candidate_id: str
    baseline_id: str
    generation: int
    stage: Stage
    repetition: str
    tasks: int = Field(ge=0)
    task_ids: tuple[str, ...]
    missing: tuple[str, ...]
    rar: float | None
    rar_interval: Interval | None
    baseline_rar: float | None
    gains: int
    losses: int
    difference: float
    interval: Interval | None
    p_value: float


@dataclass(frozen=True)
class Screened:
    """A screening: who played, the outcomes of each, and each one's comparison."""

    candidates: tuple[Candidate, ...]
    outcomes: Mapping[str, Outcomes]
    comparisons: Mapping[str, Comparison]


def screen(
    search: Search, state: State, number: int, parent: Candidate, children: Sequence[Candidate]
) -> tuple[State, Screened]:
    """Play incumbent, parent and children on one shared order of tasks; no error claim."""
    order = balanced_order(search.compared, search.rng_seed, "compare", number)
    tasks = screening_tasks(order, search.plan.tasks_per_generation)
    rivals = [c for c in (parent, *children) if c.candidate_id != state.incumbent.candidate_id]
    players = [_player(c, f"g{number}") for c in (state.incumbent, *rivals)]
    played = play(search.world, players, tasks, f"generation {number}, screening")
    outcomes = {name: outcomes_of(rollouts) for name, rollouts in played.items()}
    comparisons = {}
    baseline_gain = state.archive.gain(state.incumbent.candidate_id)
    for player in players[1:]:
        comparison = _compare(search, state.incumbent, player, outcomes, number)
        comparisons[comparison.candidate_id] = comparison
        state = _observe(state, comparison, baseline_gain)
    search.tell("screen", number, f"{len(rivals)} candidates on {len(tasks)} tasks")
    return state, Screened(tuple(rivals), outcomes, comparisons)


def promote(
    search: Search, state: State, number: int, screened: Screened
) -> tuple[State, Decision | None]:
    """Test the best candidate against the incumbent on fresh rollouts; decline the others.

    A test spends an even share of the error level that is left for the remaining generations.
    """
    challenger = _challenger(state, screened)
    for candidate in screened.candidates:
        if challenger is None or candidate.candidate_id != challenger.candidate_id:
            reason = _why_not(state, candidate)
            _decide(search, state, number, candidate, partial(declined, reason))
    if challenger is None:
        return state, None
    alpha = state.alpha_left / (search.plan.generations - number + 1)
    order = balanced_order(search.compared, search.rng_seed, "compare", number)
    screened_tasks = min(len(order), search.plan.tasks_per_generation)
    tasks = promotion_tasks(order, screened_tasks, search.plan.promotion_tasks)
    players = [_player(c, f"g{number}-promotion") for c in (state.incumbent, challenger)]
    played = play(search.world, players, tasks, f"generation {number}, promotion")
    incumbent_outcomes, outcomes = (outcomes_of(played[p.candidate.candidate_id]) for p in players)
    rule = partial(search.world.rule, incumbent_outcomes, outcomes, alpha, search.families())
    decision = _decide(search, state, number, challenger, rule)
    search.tell("promote", number, f"{challenger.candidate_id}: {decision.reason}")
    return _promoted(state, number, challenger, decision), decision


def reflect(
    search: Search, state: State, parent: Candidate, children: Sequence[Candidate], seen: Screened
) -> State:
    """Sort each child's tasks against the parent's and let its lesson gain or lose evidence."""
    lessons = state.lessons
    for child in children:
        if child.is_canary:
            continue
        regression = regression_map(
            seen.outcomes[parent.candidate_id], seen.outcomes[child.candidate_id]
        )
        lessons = learn(lessons, child, regression)
        known = {lesson.statement: lesson for lesson in lessons}
        made = partial(lesson_event, child, regression, known)
        search.world.ledger.once("lesson", child.candidate_id, made)
    return replace(state, lessons=lessons)


def _player(candidate: Candidate, repetition: str) -> Player:
    # a clone's rollouts would otherwise be the incumbent's own
    return Player(candidate, f"{repetition}-canary" if candidate.is_canary else repetition)


def _compare(
    search: Search,
    incumbent: Candidate,
    player: Player,
    outcomes: Mapping[str, Outcomes],
    number: int,
) -> Comparison:
    candidate_id = player.candidate.candidate_id
    before, after = outcomes[incumbent.candidate_id], outcomes[candidate_id]
    paired, families = pair(before, after), search.families()

    def made() -> dict[str, Any]:
        done = paired.task_ids
        right, right_before = (sum(side[t] or 0 for t in done) for side in (after, before))
        return Comparison(
            candidate_id=candidate_id,
            baseline_id=incumbent.candidate_id,
            generation=number,
            stage="screening",
            repetition=player.repetition,
            tasks=len(done),
            task_ids=done,
            missing=paired.missing,
            rar=right / len(done) if done else None,
            rar_interval=wilson(right, len(done)) if done else None,
            baseline_rar=right_before / len(done) if done else None,
            gains=len(paired.gains),
            losses=len(paired.losses),
            difference=paired.difference,
            interval=paired_interval(paired, families),
            p_value=sign_test(len(paired.gains), len(paired.losses)),
        ).to_json()

    key = f"g{number}/{candidate_id}"
    return Comparison.model_validate(search.world.ledger.once("comparison", key, made))


def _observe(state: State, comparison: Comparison, baseline_gain: float) -> State:
    observation = Observation(
        generation=comparison.generation,
        stage=comparison.stage,
        baseline_id=comparison.baseline_id,
        baseline_gain=baseline_gain,
        tasks=comparison.tasks,
        gains=comparison.gains,
        losses=comparison.losses,
    )
    archive = state.archive.with_observation(comparison.candidate_id, observation)
    return replace(state, archive=archive)


def _challenger(state: State, screened: Screened) -> Candidate | None:
    """The candidate believed best, if believed better than the incumbent."""
    gain = state.archive.gain
    best = max(screened.candidates, key=lambda c: gain(c.candidate_id), default=None)
    if best is None or gain(best.candidate_id) <= gain(state.incumbent.candidate_id):
        return None
    return best


def _why_not(state: State, candidate: Candidate) -> str:
    gain = state.archive.gain
    if gain(candidate.candidate_id) <= gain(state.incumbent.candidate_id):
        return "did not look better than the incumbent"
    return "not the best of its generation"


def _decide(
    search: Search,
    state: State,
    number: int,
    candidate: Candidate,
    rule: Callable[[], Decision],
) -> Decision:
    """Decide once: the decision as recorded, made by the rule if there is none yet."""
    names = {
        "candidateId": candidate.candidate_id,
        "incumbentId": state.incumbent.candidate_id,
        "generation": number,
    }
    key = f"g{number}/{candidate.candidate_id}"
    recorded = search.world.ledger.once("decision", key, lambda: {**names, **rule().to_json()})
    return Decision.model_validate({k: v for k, v in recorded.items() if k not in names})


def _promoted(state: State, number: int, challenger: Candidate, decision: Decision) -> State:
    """Book the error level and what was seen, and seat the challenger if it won."""
    state = replace(state, alpha_left=max(0.0, state.alpha_left - decision.alpha))
    if decision.paired is None:
        return state
    observation = Observation(
        generation=number,
        stage="promotion",
        baseline_id=state.incumbent.candidate_id,
        baseline_gain=state.archive.gain(state.incumbent.candidate_id),
        tasks=len(decision.paired.task_ids),
        gains=len(decision.paired.gains),
        losses=len(decision.paired.losses),
    )
    archive = state.archive.with_observation(challenger.candidate_id, observation)
    state = replace(state, archive=archive)
    if not decision.promoted:
        return state
    seated = state.incumbent if challenger.is_canary else challenger
    promoted = (*state.promoted, challenger.candidate_id)
    return replace(state, incumbent=seated, promoted=promoted)
