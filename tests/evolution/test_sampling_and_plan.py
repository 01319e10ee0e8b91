from __future__ import annotations

from collections import Counter

import pytest
from pydantic import ValidationError

from evolution.plan import EvolutionPlan
from evolution.sampling import (
    balanced_order,
    fold_sizes,
    promotion_tasks,
    screening_tasks,
    split_folds,
)
from tests.evolution.worlds import tasks


def test_an_order_is_a_permutation_that_depends_on_the_seed_alone() -> None:
    listed = tasks("t", 30)
    order = balanced_order(listed, 1, "x")
    assert sorted(order) == sorted(listed)
    assert balanced_order(listed[::-1], 1, "x") == order
    assert balanced_order(listed, 2, "x") != order
    assert balanced_order(listed, 1, "y") != order


def test_every_prefix_holds_families_in_proportion() -> None:
    listed = tuple((f"a{n}", "large") for n in range(30)) + tuple(
        (f"b{n}", "small") for n in range(10)
    )
    for seed in range(5):
        order = balanced_order(listed, seed)
        for length in range(1, 41):
            small = Counter(family for _, family in order[:length])["small"]
            assert abs(small - length / 4) <= 1.5


def test_trace_tasks_and_compared_tasks_never_meet() -> None:
    listed = tasks("t", 23)
    trace, compared = split_folds(listed, 7)
    assert set(trace) | set(compared) == set(listed)
    assert not set(trace) & set(compared)
    assert (len(trace), len(compared)) == fold_sizes(23) == (5, 18)
    assert split_folds(listed, 8) != (trace, compared)
    assert fold_sizes(2) == (1, 1)


def test_promotion_prefers_tasks_that_were_not_screened() -> None:
    order = tasks("t", 10)
    assert screening_tasks(order, 4) == order[:4]
    assert promotion_tasks(order, 4, 5) == order[4:9]
    assert promotion_tasks(order, 4, 8) == (*order[4:], *order[:2])
    assert sorted(promotion_tasks(order, 4, 99)) == sorted(order)


SIZES = {"train": 100, "selection": 50, "release": 7, "test": 70}


def test_the_plan_counts_its_rollouts_before_any_is_spent() -> None:
    plan = EvolutionPlan(
        generations=3,
        children=4,
        tasks_per_generation=20,
        promotion_tasks=30,
        trace_tasks=5,
        finalists=3,
        selection_tasks=40,
        test_tasks=60,
        test_repetitions=3,
        canaries=1,
    )
    assert plan.breakdown(SIZES) == {
        "trace": 15,
        "screening": (3 * 6 + 1) * 20,
        "promotion": 3 * 2 * 30,
        "selection": 3 * 40,
        "test": 2 * 3 * 60,
    }
    assert plan.planned_rollouts(SIZES) == 15 + 380 + 180 + 120 + 360


def test_a_plan_asks_for_no_more_than_the_splits_hold() -> None:
    plan = EvolutionPlan(
        generations=1, children=1, canaries=0, tasks_per_generation=9_999, promotion_tasks=9_999,
        trace_tasks=999, finalists=2, selection_tasks=0, test_tasks=9_999,
    )  # fmt: skip
    assert plan.breakdown(SIZES) == {
        "trace": 20, "screening": 3 * 80, "promotion": 2 * 80, "selection": 2 * 50, "test": 140
    }  # fmt: skip
    assert plan.planned_rollouts({}) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"generations": -1}, {"generations": 1_001}, {"children": 0}, {"children": 65},
        {"tasks_per_generation": 0}, {"promotion_tasks": 0}, {"trace_tasks": 0},
        {"alpha": 0.0}, {"alpha": 0.51}, {"finalists": 1}, {"finalists": 5},
        {"selection_tasks": -1}, {"test_tasks": -1}, {"test_repetitions": 0},
        {"parents_from": 0}, {"canaries": 2}, {"proposers": ()}, {"proposers": ("magic",)},
        {"proposers": ("random", "random")}, {"unknown": 1},
    ],
)  # fmt: skip
def test_a_plan_outside_its_bounds_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EvolutionPlan.model_validate(change)
