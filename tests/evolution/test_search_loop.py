from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from evolution.candidate import Candidate
from evolution.edits import Proposal
from evolution.evidence import Evidence
from evolution.loop import Result, evolve
from evolution.plan import EvolutionPlan
from evolution.search import Progress, World
from rsi.errors import InfrastructureError, SettingsError
from rsi.records import Rollout
from rsi.strategy import Strategy
from tests.evolution.worlds import (
    SPLITS,
    FakeEvaluator,
    Interrupted,
    MemoryLedger,
    indifferent,
    small_plan,
    tasks,
)

Ran = tuple[Result, FakeEvaluator, MemoryLedger]


def run(plan: EvolutionPlan | None = None, seed: int = 1, **world: Any) -> Ran:
    evaluator = world.pop("evaluator", None) or FakeEvaluator()
    ledger = world.pop("ledger", None) or MemoryLedger()
    made = World(evaluator=evaluator, ledger=ledger, **world)
    return evolve(plan or small_plan(), Strategy(), SPLITS, made, seed), evaluator, ledger


@pytest.fixture(scope="module")
def ran() -> Ran:
    return run(small_plan(generations=4, children=4))


def test_a_much_better_strategy_is_found_promoted_and_wins() -> None:
    plan = small_plan(generations=3, tasks_per_generation=16, promotion_tasks=24)
    result, _, ledger = run(plan)
    assert result.winner.strategy.agent_steps >= 15
    assert result.promoted
    assert result.incumbent.candidate_id in result.promoted
    (winner,) = ledger.of("winner")
    assert winner["strategyId"] == result.winner.strategy_id
    assert winner["strategy"] == result.winner.strategy.to_json()
    assert winner["lineage"][0] == result.winner.candidate_id
    assert winner["lineage"][-1] == "seed"
    assert result.stopped_by == winner["stoppedBy"] == ""


def test_the_same_call_gives_the_same_events_and_another_seed_others(ran: Ran) -> None:
    again = run(small_plan(generations=4, children=4))
    assert again[2].lines == ran[2].lines
    other = run(small_plan(generations=4, children=4), seed=2)
    assert other[2].lines != ran[2].lines


def test_trace_tasks_are_never_compared(ran: Ran) -> None:
    evaluator = ran[1]
    traced = {r.task_id for r in evaluator.requests("-trace")}
    compared = {
        r.task_id
        for call in evaluator.calls
        for r in call
        if r.repetition != "selection" and not r.repetition.endswith("-trace")
    }
    assert traced and compared
    assert not traced & compared


def test_selection_plays_selection_tasks_only_and_nothing_else_does(ran: Ran) -> None:
    evaluator, ledger = ran[1], ran[2]
    selected = evaluator.requests("selection")
    assert selected
    assert all(r.task_id.startswith("selection-") for r in selected)
    assert len({r.task_id for r in selected}) == 6
    rest = [r for call in evaluator.calls for r in call if r.repetition != "selection"]
    assert all(r.task_id.startswith("train-") for r in rest)
    (event,) = ledger.of("selection")
    assert event["taskIds"] == sorted({r.task_id for r in selected})
    seed_row = next(f for f in event["finalists"] if f["candidateId"] == "seed")
    assert seed_row["tasks"] == 6


def test_every_rollout_is_judged_on_the_signal_panel(ran: Ran) -> None:
    assert {r.scope for call in ran[1].calls for r in call} == {"signal"}


def test_a_screening_plays_all_candidates_on_the_same_tasks_in_one_call(ran: Ran) -> None:
    for number in range(1, 5):
        calls = [c for c in ran[1].calls if c[0].repetition == f"g{number}"]
        assert len(calls) == 1
        by_strategy: dict[str, list[str]] = {}
        for request in calls[0]:
            key = request.strategy.strategy_id + request.repetition
            by_strategy.setdefault(key, []).append(request.task_id)
        assert len(by_strategy) >= 5
        assert len({tuple(ids) for ids in by_strategy.values()}) == 1
        assert all(len(ids) == 8 for ids in by_strategy.values())


def test_a_promotion_is_decided_on_fresh_rollouts_of_both_sides(ran: Ran) -> None:
    tested = [d for d in ran[2].of("decision") if d["paired"]]
    assert tested
    for decision in tested:
        mark = f"g{decision['generation']}-promotion"
        asked = [r for call in ran[1].calls for r in call if r.repetition == mark]
        assert len({r.strategy.strategy_id for r in asked}) == 2
        task_ids = decision["paired"]["taskIds"]
        assert sorted({r.task_id for r in asked}) == task_ids
        assert len(task_ids) == 12


def test_the_error_level_of_all_tests_together_is_alpha(ran: Ran) -> None:
    spent = [d["alpha"] for d in ran[2].of("decision")]
    assert 0 < sum(spent) <= 0.05 + 1e-12
    first = next(a for a in spent if a)
    assert first == pytest.approx(0.05 / 4)
    left = ran[2].of("generation")[-1]["alphaLeft"]
    assert left == pytest.approx(0.05 - sum(spent))


def test_an_even_share_of_what_is_left_is_spent() -> None:
    _, _, ledger = run(small_plan(generations=3), evaluator=FakeEvaluator(indifferent))
    left = 0.05
    for event in ledger.of("generation"):
        if event["alphaSpent"]:
            assert event["alphaSpent"] == pytest.approx(left / (4 - event["number"]))
        left -= event["alphaSpent"]
        assert event["alphaLeft"] == pytest.approx(left)


def test_events_have_unique_keys_and_tell_every_generation(ran: Ran) -> None:
    result, _, ledger = ran
    keys = [(kind, key) for kind, key, _ in ledger.lines]
    assert len(set(keys)) == len(keys)
    assert [e["number"] for e in ledger.of("generation")] == [1, 2, 3, 4]
    for event in ledger.of("candidate"):
        strategy = Strategy.model_validate(event["strategy"])
        assert event["strategyId"] == strategy.strategy_id
        assert strategy == result.archive.get(event["candidateId"]).strategy
    for event in ledger.of("generation"):
        best = json.loads(
            next(
                x
                for k, key, x in ledger.lines
                if (k, key) == ("comparison", f"g{event['number']}/{event['bestId']}")
            )
        )
        assert event["rar"] == best["rar"]
        assert event["interval"] == best["rarInterval"]
        rivals = [c for c in ledger.of("comparison") if c["generation"] == event["number"]]
        assert event["difference"] == max(c["difference"] for c in rivals)
    assert ledger.of("generation")[-1]["incumbentId"] == result.incumbent.candidate_id


def test_a_comparison_tells_rates_that_fit_its_counts(ran: Ran) -> None:
    for event in ran[2].of("comparison"):
        assert event["tasks"] == len(event["taskIds"]) == 8
        assert event["rar"] - event["baselineRar"] == pytest.approx(event["difference"])
        assert event["gains"] - event["losses"] == pytest.approx(8 * event["difference"])


def test_every_child_differs_from_every_earlier_strategy(ran: Ran) -> None:
    ids = [c.strategy_id for c in ran[0].archive.candidates if not c.is_canary]
    assert len(set(ids)) == len(ids) > 10


def test_one_canary_plays_rollouts_of_its_own_and_never_takes_the_seat(ran: Ran) -> None:
    canaries = [c for c in ran[0].archive.candidates if c.is_canary]
    assert len(canaries) == 1
    clone = canaries[0]
    assert clone.strategy == ran[0].archive.get(clone.parent_ids[0]).strategy
    assert ran[1].requests(f"g{clone.generation}-canary")
    none = run(small_plan(canaries=0))[0]
    assert not any(c.is_canary for c in none.archive.candidates)


def test_lessons_hold_evidence_but_no_task_ids_in_their_text(ran: Ran) -> None:
    lessons = ran[0].lessons
    assert lessons
    assert all(lesson.supported_by for lesson in lessons)
    assert not any("train-" in lesson.statement for lesson in lessons)


def test_parents_are_not_only_promoted_ones() -> None:
    result, _, ledger = run(
        small_plan(generations=8, parents_from=8), evaluator=FakeEvaluator(indifferent)
    )
    parents = {event["parentId"] for event in ledger.of("generation")}
    assert len(parents) >= 3
    assert parents - set(result.promoted) - {"seed"}


class Repeats:
    """A reflector that always proposes the same edit, and once an impossible one."""

    def propose(
        self, evidence: Evidence, parent: Candidate, index: int, rng: Random
    ) -> Proposal | None:
        steps = 999 if index else 11
        return Proposal.model_validate(
            {"edits": [{"field": "agentSteps", "from": parent.strategy.agent_steps, "to": steps}]}
        )


def test_repeated_and_impossible_proposals_leave_a_place_to_chance_or_empty() -> None:
    _, _, ledger = run(small_plan(proposers=("reflector", "random")), reflector=Repeats())
    proposals = ledger.of("proposal")
    refused = [p for p in proposals if p["asked"] == "reflector" and p["proposer"] == "random"]
    assert refused
    assert any("out of" in r or "allowed" in r for p in refused for r in p["refused"])
    result, _, ledger = run(small_plan(proposers=("reflector",)), reflector=Repeats())
    empty = [p for p in ledger.of("proposal") if p["proposal"] is None]
    assert empty
    known = {c.candidate_id for c in result.archive.candidates}
    assert not known & {p["candidateId"] for p in empty}


def test_a_generation_without_children_still_passes() -> None:
    class Silent:
        def propose(self, *_: object) -> None:
            return None

    plan = small_plan(proposers=("reflector",), canaries=0)
    result, _, ledger = run(plan, reflector=Silent())
    assert result.winner.candidate_id == "seed"
    assert [e["bestId"] for e in ledger.of("generation")] == [None, None]
    assert ledger.of("selection") == []


def test_a_spent_budget_is_an_ordinary_end() -> None:
    full = run()[1].paid
    for budget in range(0, full, 17):
        evaluator = FakeEvaluator(budget=budget)
        result, _, ledger = run(evaluator=evaluator)
        assert evaluator.paid <= budget
        assert result.stopped_by == "rollouts"
        (winner,) = ledger.of("winner")
        assert winner["stoppedBy"] == "rollouts"
        if not ledger.of("selection"):
            assert result.winner == result.incumbent
            assert "no selection" in winner["reason"]


def test_the_plan_bounds_what_is_really_played() -> None:
    for seed in range(3):
        plan = small_plan(generations=3, test_tasks=1)
        evaluator = run(plan, seed)[1]
        sizes = {name: len(listed) for name, listed in SPLITS.items()}
        planned = plan.breakdown(sizes)
        assert evaluator.paid <= sum(planned.values()) - planned["test"]
        assert len(evaluator.requests("-trace")) == planned["trace"]


def test_a_world_in_which_everything_fails_is_told_in_one_line() -> None:
    with pytest.raises(InfrastructureError) as told:
        run(evaluator=FakeEvaluator(lost=1.0))
    assert str(told.value).startswith("generation 1, traces: all 3 rollouts failed (the sandbox")
    assert "\n" not in str(told.value)


def test_lost_rollouts_are_neither_failures_nor_successes() -> None:
    _, _, ledger = run(evaluator=FakeEvaluator(lost=0.3))
    comparisons = ledger.of("comparison")
    assert any(c["missing"] for c in comparisons)
    for event in comparisons:
        assert len(event["taskIds"]) + len(event["missing"]) == 8
        assert not set(event["taskIds"]) & set(event["missing"])
    for decision in ledger.of("decision"):
        if decision["paired"] and decision["paired"]["missing"]:
            assert decision["paired"]["worst"] < decision["paired"]["best"]


def test_an_evaluator_that_answers_out_of_order_is_noticed() -> None:
    class Turned(FakeEvaluator):
        def evaluate(self, requests: Any) -> list[Rollout]:
            return super().evaluate(requests)[::-1]

    with pytest.raises(ValueError, match="out of order"):
        run(evaluator=Turned())


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"train": tasks("a", 1)}, "has 1 tasks"),
        ({}, "has 0 tasks"),
        ({"train": tasks("a", 5), "selection": tasks("a", 2)}, "listed twice"),
    ],
)
def test_splits_that_cannot_carry_the_plan_are_refused(
    splits: dict[str, Any], message: str
) -> None:
    world = World(FakeEvaluator(), MemoryLedger())
    with pytest.raises(SettingsError, match=message):
        evolve(small_plan(), Strategy(), splits, world)
    assert world.evaluator.calls == []  # type: ignore[attr-defined]


def test_no_generations_give_the_seed_back() -> None:
    result, evaluator, _ = run(small_plan(generations=0))
    assert result.winner.candidate_id == "seed"
    assert evaluator.paid == 0


def test_without_selection_tasks_the_incumbent_wins() -> None:
    evaluator = FakeEvaluator()
    world = World(evaluator, MemoryLedger())
    result = evolve(small_plan(), Strategy(), {"train": tasks("a", 30)}, world, 1)
    assert result.winner == result.incumbent
    assert not evaluator.requests("selection")


def test_watchers_are_told_every_stage() -> None:
    seen: list[Progress] = []
    run(on_progress=seen.append)
    stages = [p.stage for p in seen if p.generation == 1]
    assert stages[:3] == ["trace", "propose", "screen"]
    assert seen[-1].stage == "winner"


RESUMED = small_plan(children=2, tasks_per_generation=4, promotion_tasks=5, selection_tasks=4)


def resume(die: Callable[[MemoryLedger, FakeEvaluator], None]) -> tuple[Result, int, list[Any]]:
    """Run until the planned death, run again over what was kept; count what was paid in all."""
    ledger, evaluator = MemoryLedger(), FakeEvaluator()
    die(ledger, evaluator)
    with pytest.raises(Interrupted):
        run(RESUMED, ledger=ledger, evaluator=evaluator)
    again = FakeEvaluator(journal=evaluator.journal)
    result, _, kept = run(RESUMED, evaluator=again, ledger=MemoryLedger(lines=ledger.lines))
    return result, evaluator.paid + again.paid, kept.lines


def test_a_search_resumes_after_every_event_with_the_same_events_and_nothing_paid_twice() -> None:
    result, evaluator, ledger = run(RESUMED)
    for stop_at in range(len(ledger.lines)):

        def die(kept: MemoryLedger, _: FakeEvaluator, stop_at: int = stop_at) -> None:
            kept.stop_at = stop_at

        resumed, paid, lines = resume(die)
        assert resumed.winner == result.winner
        assert resumed.archive == result.archive
        assert paid == evaluator.paid
        assert lines == ledger.lines


def test_a_search_resumes_in_the_middle_of_rollouts() -> None:
    result, evaluator, ledger = run(RESUMED)
    for die_after in range(0, evaluator.paid, 7):

        def die(_: MemoryLedger, world: FakeEvaluator, die_after: int = die_after) -> None:
            world.die_after = die_after

        resumed, paid, lines = resume(die)
        assert resumed.winner == result.winner
        assert paid == evaluator.paid
        assert lines == ledger.lines


def test_recorded_decisions_are_taken_as_they_stand() -> None:
    ledger = MemoryLedger()
    evaluator = run(RESUMED, ledger=ledger)[1]
    lines = [
        (kind, key, line.replace('"promoted": true', '"promoted": false'))
        for kind, key, line in ledger.lines
        if kind in ("proposal", "candidate", "comparison", "decision")
    ]
    again = FakeEvaluator(journal=evaluator.journal)
    result, _, _ = run(RESUMED, evaluator=again, ledger=MemoryLedger(lines=lines))
    assert result.promoted == ()


def test_equal_strategies_are_rarely_promoted_in_whole_runs() -> None:
    plan = small_plan(
        generations=3, children=2, tasks_per_generation=5, promotion_tasks=24, finalists=2
    )
    promoted = 0
    for seed in range(16):
        evaluator = FakeEvaluator(indifferent, seed=seed)
        promoted += bool(run(plan, seed, evaluator=evaluator)[0].promoted)
    # alpha is 5 %: four of sixteen would be a chance of 1 in 100
    assert promoted <= 3
