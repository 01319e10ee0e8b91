from __future__ import annotations

from random import Random

import pytest

from evolution.archive import Archive, Observation
from evolution.candidate import CANARY, seed_candidate
from evolution.parents import choose_mate, choose_parent
from rsi.strategy import Strategy
from tests.evolution.worlds import candidate


def seen(gains: int, losses: int, tasks: int = 20, baseline_gain: float = 0.0) -> Observation:
    return Observation(
        generation=1,
        stage="screening",
        baseline_id="seed",
        baseline_gain=baseline_gain,
        tasks=tasks,
        gains=gains,
        losses=losses,
    )


def archive(*differences: int) -> Archive:
    """The seed and g1-c1, g1-c2, ... with so many more gains than losses on 20 tasks."""
    made = Archive((seed_candidate(Strategy()),))
    for n, difference in enumerate(differences, 1):
        child = candidate(f"g1-c{n}", strategy=Strategy(agent_steps=10 + n))
        made = made.with_candidate(child)
        made = made.with_observation(
            child.candidate_id, seen(max(difference, 0), max(-difference, 0))
        )
    return made


def test_updates_leave_the_old_archive_as_it_was() -> None:
    old = Archive((seed_candidate(Strategy()),))
    new = old.with_candidate(candidate())
    newer = new.with_observation("g1-c1", seen(1, 0))
    assert len(old.candidates) == 1
    assert not new.observations
    assert newer.observed("g1-c1") == (seen(1, 0),)


def test_an_archive_refuses_a_second_id_an_unknown_parent_and_an_unknown_candidate() -> None:
    made = archive(0)
    with pytest.raises(ValueError, match="id taken"):
        made.with_candidate(candidate())
    with pytest.raises(ValueError, match="parent unknown"):
        made.with_candidate(candidate("g2-c1", parent_ids=("g9-c9",)))
    with pytest.raises(KeyError):
        made.with_observation("g9-c9", seen(1, 0))


def test_a_gain_is_shrunken_and_stands_on_the_baselines_gain() -> None:
    made = archive(10)
    assert made.gain("seed") == 0.0
    assert made.gain("g1-c1") == pytest.approx(10 / 40)
    more = made.with_observation("g1-c1", seen(10, 0, tasks=60, baseline_gain=0.4))
    assert more.gain("g1-c1") == pytest.approx(0.3 + 20 / 100)


def test_more_tasks_with_the_same_rate_are_believed_more() -> None:
    made = archive(4)
    assert made.with_observation("g1-c1", seen(4, 0)).gain("g1-c1") > made.gain("g1-c1")


def test_candidates_rank_best_first_and_ties_stay_in_order() -> None:
    made = archive(-2, 5, 0, 5)
    assert [c.candidate_id for c in made.ranked()] == ["g1-c2", "g1-c4", "seed", "g1-c3", "g1-c1"]


def test_canaries_and_unscreened_candidates_have_no_rank() -> None:
    made = archive(1).with_candidate(candidate("g1-c9"))
    made = made.with_candidate(candidate("g1-canary", proposer=CANARY))
    made = made.with_observation("g1-canary", seen(9, 0))
    made = made.with_candidate(candidate("g2-c1")).with_observation("g2-c1", seen(0, 0, tasks=0))
    assert [c.candidate_id for c in made.ranked()] == ["g1-c1", "seed"]


def test_parents_come_from_all_screened_candidates_of_the_top_k() -> None:
    made = archive(-2, 5, 3, 1)
    drawn = {choose_parent(made, 3, Random(n)).candidate_id for n in range(60)}
    assert drawn == {"g1-c2", "g1-c3", "g1-c4"}
    assert {choose_parent(made, 1, Random(n)).candidate_id for n in range(20)} == {"g1-c2"}
    everyone = {choose_parent(made, 9, Random(n)).candidate_id for n in range(90)}
    assert everyone == {"seed", "g1-c1", "g1-c2", "g1-c3", "g1-c4"}


def test_a_mate_is_another_strategy() -> None:
    made = archive(5, 3)
    parent = made.get("g1-c1")
    drawn = {choose_mate(made, parent, 2, Random(n)).candidate_id for n in range(40)}  # type: ignore[union-attr]
    assert drawn == {"g1-c2", "seed"}
    alone = Archive((seed_candidate(Strategy()),))
    assert choose_mate(alone, alone.candidates[0], 3, Random(0)) is None


def test_a_lineage_names_every_ancestor_once() -> None:
    made = archive(1, 1).with_candidate(candidate("g2-c1", parent_ids=("g1-c1", "g1-c2")))
    assert made.lineage("g2-c1") == ("g2-c1", "g1-c1", "g1-c2", "seed")
    assert made.lineage("seed") == ("seed",)
