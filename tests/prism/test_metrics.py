"""Golden values of page 2's formulas, and what the scores refuse."""

from __future__ import annotations

import numpy as np
import pytest

from rsi.errors import UserError
from rsi.prism import metrics
from tests.builders import outcome


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [(85, 300, 23.5, 33.7), (97, 300, 27.3, 37.8), (28, 100, 20.1, 37.5)],
)
def test_wilson_gives_the_published_intervals(hits, total, low, high):
    interval = metrics.wilson(hits, total)
    assert (round(100 * interval.low, 1), round(100 * interval.high, 1)) == (low, high)


@pytest.mark.parametrize(("var", "irr", "h"), [(72.67, 79.33, 75.85), (69.17, 87.27, 77.17)])
def test_h_is_the_harmonic_mean_of_the_aggregates(var, irr, h):
    assert round(metrics.harmonic(var, irr), 2) == h


def test_h_of_zeros_is_zero():
    assert metrics.harmonic(0.0, 0.0) == 0.0


def test_jsf_equals_rar_on_the_panel_of_initial_and_reference():
    made = [
        outcome("a"),
        outcome("b", b="ACCEPT"),
        outcome("c", g="REJECT"),
        outcome("d", b="TIMEOUT"),
        outcome("e", b="SUITE_ERROR"),
    ]
    assert [o.f for o in made] == [o.s for o in made] == [1, 0, 0, 0, 0]
    scores = metrics.score(made)
    assert scores["jsf"].value == scores["rar"].value == 0.2


def test_jsf_is_one_only_when_every_implementation_is_told_right():
    right = outcome(valid="AAAA", invalid="RRRRR")
    assert (right.f, right.s) == (1, 1)
    for wrong in (
        outcome(valid="AAAR", invalid="RRRRR"),
        outcome(valid="AAAA", invalid="RRRRA"),
        outcome(valid="AAAA", invalid="RRRRT"),
        outcome(valid="AAAT", invalid="RRRRR"),
        outcome(b="ACCEPT", valid="AAAA", invalid="RRRRR"),
        outcome(g="REJECT", valid="AAAA", invalid="RRRRR"),
    ):
        assert wrong.s == 0


def test_var_and_irr_average_over_the_others_only_where_observed():
    scores = metrics.score(
        [outcome("a", valid="AARR", invalid="RRRRR"), outcome("b", valid="AAAA"), outcome("c")]
    )
    assert scores["var"].value == 0.75 and scores["var"].used == 2
    assert scores["irr"].value == 1.0 and scores["irr"].used == 1
    assert scores["h"].value == pytest.approx(2 * 0.75 / 1.75)


def test_strict_twins_count_assertion_rejections_only():
    scores = metrics.score([outcome("a"), outcome("b", reason="import")])
    assert scores["rar"].value == 1.0
    assert scores["rar_strict"].value == 0.5
    assert scores["jsf_strict"].value == 0.5


def test_strict_joint_success_looks_at_more_than_initial_and_reference():
    made = [outcome("a", valid="AR", invalid="R"), outcome("b", valid="A", invalid="RR")]
    scores = metrics.score(made)
    values = {name: scores[name].value for name in ("rar", "rar_strict", "jsf", "jsf_strict")}
    assert values == {"rar": 1.0, "rar_strict": 1.0, "jsf": 0.5, "jsf_strict": 0.5}


def test_incomplete_outcomes_are_left_out_and_counted():
    scores = metrics.score([outcome("a"), outcome("b", b="INFRA")])
    assert (scores["rar"].value, scores["rar"].used, scores["rar"].total) == (1.0, 1, 2)


def test_independent_tasks_take_wilson_and_siblings_take_clusters():
    alone = [outcome(f"t{i}", b="REJECT" if i < 85 else "ACCEPT") for i in range(300)]
    assert metrics.score(alone)["rar"].interval == metrics.wilson(85, 300)
    siblings = [
        outcome(f"t{i}", family=f"f{i % 3}", b="REJECT" if i % 3 else "ACCEPT") for i in range(30)
    ]
    interval = metrics.score(siblings)["rar"].interval
    assert interval.method == "cluster bootstrap"
    # families agree inside, so the clustered interval is wider than thirty independent tasks'
    assert interval.high - interval.low > metrics.wilson(20, 30).high - metrics.wilson(20, 30).low


def test_the_cluster_bootstrap_covers_the_mean_and_is_repeatable():
    rng = np.random.default_rng(3)
    clusters = [rng.random((8, 1)) for _ in range(20)]
    mean = float(np.concatenate(clusters).mean())
    first = metrics.cluster_bootstrap(clusters, lambda rows: float(rows.mean()))
    assert first.low < mean < first.high
    assert first == metrics.cluster_bootstrap(clusters, lambda rows: float(rows.mean()))


def test_agreement_of_few_tasks_is_no_certainty():
    scores = metrics.score([outcome(f"t{i}", "one", valid="AAAA", invalid="AAAAA") for i in "abc"])
    for name, value in (("rar", 1.0), ("var", 1.0), ("irr", 0.0)):
        interval = scores[name].interval
        assert scores[name].value == value
        assert interval.method == "wilson over clusters"
        assert interval.high - interval.low > 0.7, "three siblings are one family"
        assert 0.0 <= interval.low <= value <= interval.high <= 1.0
    same = [outcome(t) for t in "abc"]
    gain = metrics.compare(same, same).interval
    assert gain.low == -gain.high and gain.high == metrics.wilson(0, 3).high


def test_scores_of_nothing_are_not_zero():
    score = metrics.score([])["rar"]
    assert (score.value, score.interval, score.used) == (None, None, 0)
    assert str(score) == "n/a (0/0)"


def test_a_score_is_printed_with_its_interval_and_counts():
    assert str(metrics.score([outcome(f"t{i}") for i in range(10)])["rar"]) == (
        "100.0 % [72.2, 100.0] (10/10)"
    )


def test_compare_pairs_by_task():
    before = [outcome("a", b="ACCEPT"), outcome("b"), outcome("c", b="ACCEPT")]
    after = [outcome("c"), outcome("a"), outcome("b", g="REJECT")]
    found = metrics.compare(before, after)
    assert (found.gains, found.losses, found.tasks) == (2, 1, 3)
    assert found.value == pytest.approx(1 / 3)
    assert found.p_value == 1.0
    assert found.interval.low <= found.value <= found.interval.high


def test_compare_refuses_different_task_sets():
    with pytest.raises(UserError, match="different task sets"):
        metrics.compare([outcome("a")], [outcome("b")])


@pytest.mark.parametrize(("gains", "losses", "p"), [(0, 0, 1.0), (6, 0, 0.03125), (9, 1, 0.0215)])
def test_mcnemar_is_exact_and_two_sided(gains, losses, p):
    assert metrics.mcnemar_exact(gains, losses) == pytest.approx(p, abs=1e-4)


def test_states_are_counted_over_all_cells():
    counts = metrics.states([outcome(valid="AAT", invalid="R")])
    assert (counts["ACCEPT"], counts["REJECT"], counts["TIMEOUT"], counts["INFRA"]) == (3, 2, 1, 0)
