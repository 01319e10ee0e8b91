from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from evolution.archive import Archive, Observation
from evolution.breeding import rejected_edits
from evolution.candidate import Candidate, seed_candidate
from evolution.edits import Proposal, edit_key, edit_of
from evolution.evidence import Evidence
from evolution.lessons import regression_map
from evolution.loop import Result, evolve
from evolution.plan import EvolutionPlan
from evolution.promotion import Decision
from evolution.sampling import balanced_order
from evolution.search import World
from evolution.statistics import Outcomes, pair
from rsi.records import RolloutRequest
from rsi.strategy import Strategy
from tests.evolution.worlds import (
    SPLITS,
    FakeEvaluator,
    MemoryLedger,
    candidate,
    indifferent,
    small_plan,
    tasks,
)


class Silent:
    """A reflector that never has anything to say."""

    def propose(
        self, evidence: Evidence, parent: Candidate, index: int, rng: Random
    ) -> Proposal | None:
        return None


class Listening(Silent):
    """Keeps what it is shown, and proposes more steps with a lesson."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, tuple[str, ...]]] = []

    def propose(
        self, evidence: Evidence, parent: Candidate, index: int, rng: Random
    ) -> Proposal | None:
        self.asked.append((index, evidence.lessons))
        steps = parent.strategy.agent_steps
        edit = {"field": "agentSteps", "from": steps, "to": min(40, steps + 6 + index)}
        return Proposal.model_validate({"edits": [edit], "lesson": "More steps help."})


def promote_all(
    parent: Outcomes, child: Outcomes, alpha: float, families: Mapping[str, str] | None = None
) -> Decision:
    return Decision(
        promoted=True, reason="made so", paired=pair(parent, child), p_value=0.0, alpha=alpha
    )


def run(plan: EvolutionPlan, seed: int, world: World) -> Result:
    return evolve(plan, Strategy(), SPLITS, world, seed)


@pytest.fixture(scope="module")
def seated() -> tuple[Result, FakeEvaluator, MemoryLedger]:
    """A run in which every challenger is seated, so later baselines are not the seed."""
    evaluator, ledger = FakeEvaluator(), MemoryLedger()
    plan = small_plan(generations=5, parents_from=6)
    return run(plan, 3, World(evaluator, ledger, rule=promote_all)), evaluator, ledger


def test_a_promoted_canary_is_counted_but_the_incumbent_keeps_its_seat() -> None:
    plan = small_plan(generations=1, proposers=("reflector",))
    tested = 0
    for seed in range(8):
        evaluator = FakeEvaluator(indifferent, seed=seed)
        world = World(evaluator, MemoryLedger(), Silent(), rule=promote_all)
        result = run(plan, seed, world)
        tested += bool(result.promoted)
        assert result.promoted in ((), ("g1-canary",))
        assert result.incumbent.candidate_id == result.winner.candidate_id == "seed"
    assert tested


def test_a_candidate_that_only_equals_the_incumbent_is_not_tested() -> None:
    ledger = MemoryLedger()
    result = run(small_plan(), 1, World(FakeEvaluator(lambda _: 1.0), ledger, rule=promote_all))
    assert result.promoted == ()
    decisions = ledger.of("decision")
    assert decisions and all(d["paired"] is None for d in decisions)
    assert {d["reason"] for d in decisions} == {"did not look better than the incumbent"}


def test_gains_stand_on_what_the_incumbent_had_gained(
    seated: tuple[Result, FakeEvaluator, MemoryLedger],
) -> None:
    result, _, _ = seated
    observations = [o for _, o in result.archive.observations]
    later = [o for o in observations if o.baseline_id != "seed"]
    assert {o.stage for o in later} == {"screening", "promotion"}
    assert all(o.baseline_gain > 0 for o in later)
    assert all(o.baseline_gain == 0 for o in observations if o.baseline_id == "seed")
    assert len({o.baseline_id for o in observations}) >= 2


def test_children_are_mapped_against_their_parent_and_canaries_teach_nothing(
    seated: tuple[Result, FakeEvaluator, MemoryLedger],
) -> None:
    result, evaluator, ledger = seated
    parents = {e["number"]: e["parentId"] for e in ledger.of("generation")}
    baselines = {c["generation"]: c["baselineId"] for c in ledger.of("comparison")}
    assert any(parents[n] != baselines[n] for n in parents)

    def outcomes(candidate_id: str, number: int, task_ids: list[str]) -> Outcomes:
        strategy = result.archive.get(candidate_id).strategy
        requests = [
            RolloutRequest(strategy=strategy, task_id=t, repetition=f"g{number}") for t in task_ids
        ]
        return {r.task_id: evaluator.journal[r.rollout_id].rar for r in requests}

    events = ledger.of("lesson")
    for event in events:
        number = event["generation"]
        (task_ids,) = {
            tuple(c["taskIds"])
            for c in ledger.of("comparison")
            if c["generation"] == number and c["candidateId"] == event["candidateId"]
        }
        expected = regression_map(
            outcomes(parents[number], number, list(task_ids)),
            outcomes(event["candidateId"], number, list(task_ids)),
        )
        assert event["regression"] == expected.to_json()
    taught = {e["candidateId"] for e in events}
    children = {c.candidate_id for c in result.archive.candidates if c.proposer != "seed"}
    assert taught == {c for c in children if not c.endswith("canary")}


def test_generations_are_compared_on_different_tasks(
    seated: tuple[Result, FakeEvaluator, MemoryLedger],
) -> None:
    sets = {tuple(c["taskIds"]) for c in seated[2].of("comparison")}
    assert len(sets) >= 4


def test_a_promotion_plays_tasks_that_its_screening_did_not() -> None:
    ledger = MemoryLedger()
    run(small_plan(), 1, World(FakeEvaluator(), ledger, rule=promote_all))
    tested = [d for d in ledger.of("decision") if d["paired"]]
    assert tested
    for decision in tested:
        screened = next(
            c["taskIds"]
            for c in ledger.of("comparison")
            if c["generation"] == decision["generation"]
        )
        assert not set(screened) & set(decision["paired"]["taskIds"])


def test_a_crossover_has_two_parents_and_its_child_lies_between_them() -> None:
    plan = small_plan(generations=6, parents_from=8, proposers=("crossover", "random"))
    result = run(plan, 2, World(FakeEvaluator(indifferent), MemoryLedger()))
    crossed = [c for c in result.archive.candidates if c.proposer == "crossover"]
    assert crossed
    for child in crossed:
        mine, theirs = (result.archive.get(p).strategy for p in child.parent_ids)
        for name in Strategy.model_fields:
            value = getattr(child.strategy, name)
            assert value in (getattr(mine, name), getattr(theirs, name))
    others = [c for c in result.archive.candidates if c.proposer == "random"]
    assert all(len(c.parent_ids) == 1 for c in others)


def test_siblings_are_numbered_and_lessons_reach_the_next_generation() -> None:
    reflector = Listening()
    plan = small_plan(generations=2, children=3, proposers=("reflector",), canaries=0)
    run(plan, 1, World(FakeEvaluator(), MemoryLedger(), reflector))
    assert reflector.asked[:3] == [(0, ()), (1, ()), (2, ())]
    assert all(lessons == ("More steps help.",) for _, lessons in reflector.asked[3:])
    assert len(reflector.asked) >= 6


def test_zero_selection_tasks_mean_the_whole_split() -> None:
    ledger = MemoryLedger()
    run(small_plan(selection_tasks=0), 1, World(FakeEvaluator(), ledger))
    (event,) = ledger.of("selection")
    assert len(event["taskIds"]) == len(SPLITS["selection"])


def test_members_of_a_family_are_shuffled_too() -> None:
    listed = tasks("t", 30)
    orders = {
        tuple(t for t, family in balanced_order(listed, seed) if family == "family0")
        for seed in range(5)
    }
    assert len(orders) == 5


class Telling(Silent):
    """Names a task of the evidence in its lesson."""

    def propose(
        self, evidence: Evidence, parent: Candidate, index: int, rng: Random
    ) -> Proposal | None:
        edit = {"field": "agentSteps", "from": parent.strategy.agent_steps, "to": 20 + index}
        lesson = f"Remember {evidence.task_ids[0]}."
        return Proposal.model_validate({"edits": [edit], "lesson": lesson})


def test_a_proposal_that_names_a_traced_task_is_not_adopted() -> None:
    ledger = MemoryLedger()
    plan = small_plan(proposers=("reflector",))
    result = run(plan, 1, World(FakeEvaluator(), ledger, Telling()))
    assert all(p["proposal"] is None for p in ledger.of("proposal"))
    assert all("names a task" in r for p in ledger.of("proposal") for r in p["refused"])
    assert result.winner.candidate_id == "seed"


def test_edits_of_candidates_that_did_worse_are_rejected_and_no_others() -> None:
    archive = Archive((seed_candidate(Strategy()),))
    keys = []
    for steps, gains, losses in ((11, 1, 3), (12, 3, 1), (13, 2, 2)):
        edits = (edit_of(Strategy(), "agent_steps", steps, ""),)
        child = candidate(f"g1-c{steps}", strategy=Strategy(agent_steps=steps), edits=edits)
        seen = Observation(
            generation=1, stage="screening", baseline_id="seed", baseline_gain=0.0, tasks=9,
            gains=gains, losses=losses,
        )  # fmt: skip
        archive = archive.with_candidate(child).with_observation(child.candidate_id, seen)
        keys.append(edit_key(edits))
    assert rejected_edits(archive) == {keys[0]}
