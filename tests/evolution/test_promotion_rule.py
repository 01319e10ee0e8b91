from __future__ import annotations

from random import Random

import pytest
from pydantic import ValidationError

from evolution.promotion import Decision, decide, declined
from evolution.statistics import pair, paired_interval, sign_test, standard_error


def sides(gains: int, losses: int, same: int = 0) -> tuple[dict[str, int], dict[str, int]]:
    before = {f"t{n}": int(n >= gains) for n in range(gains + losses + same)}
    after = {f"t{n}": int(n < gains or n >= gains + losses) for n in range(len(before))}
    return before, after


def test_the_sign_test_is_exact_and_one_sided() -> None:
    assert sign_test(0, 0) == 1.0
    assert sign_test(5, 0) == pytest.approx(1 / 32)
    assert sign_test(0, 5) == 1.0
    assert sign_test(8, 2) == pytest.approx(56 / 1024)
    assert sign_test(2, 8) == pytest.approx(1013 / 1024)


def test_pairs_are_sorted_into_gains_losses_and_missing() -> None:
    paired = pair(
        {"a": 0, "b": 1, "c": 1, "d": 0, "e": None}, {"e": 1, "d": None, "c": 1, "b": 0, "a": 1}
    )
    assert paired.task_ids == ("a", "b", "c")
    assert (paired.gains, paired.losses, paired.missing) == (("a",), ("b",), ("d", "e"))
    assert paired.difference == 0.0


def test_the_difference_is_over_complete_pairs() -> None:
    before, after = sides(6, 2, 12)
    assert pair(before, after).difference == pytest.approx(4 / 20)


@pytest.mark.parametrize(
    ("before", "after", "worst", "best"),
    [(None, None, -1, 1), (0, None, 0, 1), (1, None, -1, 0), (None, 0, -1, 0), (None, 1, 0, 1)],
)
def test_a_lost_outcome_widens_the_bounds_to_what_it_could_have_been(
    before: int | None, after: int | None, worst: int, best: int
) -> None:
    paired = pair({"a": 0, "b": before}, {"a": 1, "b": after})
    assert (paired.worst, paired.best) == ((1 + worst) / 2, (1 + best) / 2)
    assert paired.difference == 1.0


def test_both_sides_play_the_same_tasks() -> None:
    for before, after in (({}, {}), ({"a": 1}, {"b": 1}), ({"a": 1}, {"a": 1, "b": 1})):
        with pytest.raises(ValueError, match="same tasks"):
            pair(before, after)


def test_a_much_better_child_is_promoted_and_the_record_says_on_what() -> None:
    before, after = sides(14, 1, 5)
    decision = decide(before, after, 0.01)
    assert decision.promoted
    assert decision.p_value == pytest.approx(16 / 2**15)
    assert decision.alpha == 0.01
    assert decision.paired is not None and len(decision.paired.task_ids) == 20
    assert decision.interval is not None
    assert decision.interval.low < 13 / 20 < decision.interval.high


def test_a_p_value_equal_to_alpha_promotes_and_one_above_does_not() -> None:
    before, after = sides(5, 0)
    assert decide(before, after, 1 / 32).promoted
    declined_one = decide(before, after, 1 / 32 - 1e-9)
    assert not declined_one.promoted
    assert "p 0.0312 > alpha" in declined_one.reason


def test_a_worse_child_is_declined() -> None:
    before, after = sides(1, 14)
    assert not decide(before, after, 0.5).promoted


def test_no_outcome_on_both_sides_decides_nothing() -> None:
    decision = decide({"a": None, "b": 1}, {"a": 1, "b": None}, 0.5)
    assert not decision.promoted
    assert decision.interval is None
    assert "no task has an outcome" in decision.reason


def test_a_promotion_that_lost_outcomes_could_reverse_is_declined() -> None:
    before, after = sides(6, 0, 2)
    assert decide(before, after, 0.05).promoted
    lost = {f"x{n}": None for n in range(6)}
    decision = decide({**before, **lost}, {**after, **lost}, 0.05)
    assert not decision.promoted
    assert decision.reason == "6 lost outcomes could reverse it"
    fewer = {f"x{n}": None for n in range(5)}
    assert decide({**before, **fewer}, {**after, **fewer}, 0.05).promoted


def test_an_impossible_promotion_cannot_be_built() -> None:
    with pytest.raises(ValidationError):
        Decision(promoted=True, reason="because", p_value=0.01, alpha=0.05)
    before, after = sides(3, 3)
    with pytest.raises(ValidationError):
        decide(before, after, 0.05).updated(promoted=True)
    assert not declined("not tested").promoted


def test_the_interval_resamples_families_so_clustered_gains_are_less_certain() -> None:
    before, after = sides(10, 0, 10)
    paired = pair(before, after)
    apart = paired_interval(paired, {})
    together = paired_interval(paired, {f"t{n}": "one" if n < 10 else "two" for n in range(20)})
    assert apart is not None and together is not None
    assert together.high - together.low > 1.5 * (apart.high - apart.low)
    assert paired_interval(paired, {}) == apart


def test_the_standard_error_is_that_of_a_mean() -> None:
    assert standard_error([1.0, 0.0, 1.0, 0.0]) == pytest.approx((1 / 3) ** 0.5 / 2)
    assert standard_error([1.0]) == 0.0


def test_an_identical_child_is_promoted_at_most_as_often_as_alpha_says() -> None:
    rng = Random(5)
    promoted = 0
    for _ in range(4_000):
        flips = [(rng.random() < 0.5) - (rng.random() < 0.5) for _ in range(60)]
        promoted += sign_test(flips.count(1), flips.count(-1)) <= 0.05
    assert 0.01 < promoted / 4_000 <= 0.05


def test_a_child_better_by_thirty_points_is_promoted_mostly() -> None:
    rng = Random(6)
    promoted = 0
    for _ in range(500):
        pairs = [(rng.random() < 0.7) - (rng.random() < 0.4) for _ in range(60)]
        promoted += sign_test(pairs.count(1), pairs.count(-1)) <= 0.05
    assert promoted / 500 > 0.8
