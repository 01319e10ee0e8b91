from __future__ import annotations

from dataclasses import replace

import pytest

from evolution.archive import Archive, Observation
from evolution.candidate import seed_candidate
from evolution.plan import EvolutionPlan
from evolution.search import State, start
from evolution.selection import finalists, standings, winner_of
from rsi.strategy import Strategy
from tests.evolution.worlds import candidate

SEED = seed_candidate(Strategy())
CHILD = candidate("g1-c1", strategy=Strategy(agent_steps=15))


def state(*gains: int) -> State:
    archive = Archive((SEED,))
    for n, gain in enumerate(gains, 1):
        child = candidate(f"g{n}-c1", strategy=Strategy(agent_steps=10 + n), generation=n)
        observation = Observation(
            generation=n, stage="screening", baseline_id="seed", baseline_gain=0.0, tasks=20,
            gains=max(gain, 0), losses=max(-gain, 0),
        )  # fmt: skip
        archive = archive.with_candidate(child).with_observation(child.candidate_id, observation)
    return replace(start(EvolutionPlan(), Strategy()), archive=archive)


def names(given: State, count: int) -> list[str]:
    return [c.candidate_id for c in finalists(given, count)]


def rights(count: int, of: int = 20) -> dict[str, int | None]:
    return {f"t{n}": int(n < count) for n in range(of)}


def test_the_seed_is_always_a_finalist_and_the_best_screened_fill_the_rest() -> None:
    assert names(state(3, 9, 5, 1), 3) == ["seed", "g2-c1", "g3-c1"]
    assert names(state(3, 9, 5, 1), 2) == ["seed", "g2-c1"]


def test_candidates_that_look_no_better_than_the_seed_are_no_finalists() -> None:
    assert names(state(0, -3, 2), 4) == ["seed", "g3-c1"]
    assert names(state(0, -3), 4) == ["seed"]


def test_the_incumbent_is_preferred_then_earlier_ones() -> None:
    given = state(3, 9, 5)
    given = replace(given, incumbent=given.archive.get("g3-c1"))
    assert names(given, 4) == ["g3-c1", "seed", "g1-c1", "g2-c1"]
    assert names(given, 2) == ["g3-c1", "seed"]


def test_within_a_generation_fewer_changed_fields_are_preferred() -> None:
    given = state(9)
    simple, wide = Strategy(repair_steps=4), Strategy(repair_steps=5, max_rounds=2, agent_steps=9)
    archive = given.archive
    for name, strategy in (("g1-c2", wide), ("g1-c3", simple)):
        archive = archive.with_candidate(candidate(name, strategy=strategy))
        archive = archive.with_observation(name, given.archive.observed("g1-c1")[0])
    archive = Archive(tuple(c for c in archive.candidates if c.candidate_id != "g1-c1"), tuple(
        o for o in archive.observations if o[0] != "g1-c1"
    ))  # fmt: skip
    assert names(replace(given, archive=archive), 3) == ["seed", "g1-c3", "g1-c2"]


def test_a_finalist_within_one_standard_error_of_the_best_stays_eligible() -> None:
    # 1 of 20 behind: difference 0.05, standard error of the mean 0.05
    rows = standings([SEED, CHILD], {"seed": rights(10), "g1-c1": rights(11)})
    assert [r.candidate_id for r in rows] == ["seed", "g1-c1"]
    assert rows[0].behind == pytest.approx(0.05)
    assert rows[0].standard_error == pytest.approx(0.05)
    assert rows[1].behind == 0
    assert winner_of(rows, SEED)[0] == "seed"


def test_a_clear_lead_wins_over_the_preferred() -> None:
    rows = standings([SEED, CHILD], {"seed": rights(10), "g1-c1": rights(14)})
    assert not rows[0].eligible
    assert winner_of(rows, SEED)[0] == "g1-c1"
    assert rows[1].rar == pytest.approx(0.7)
    assert rows[1].interval is not None and rows[1].interval.low < 0.7


def test_a_tie_goes_to_the_preferred() -> None:
    rows = standings([SEED, CHILD], {"seed": rights(10), "g1-c1": rights(10)})
    assert winner_of(rows, SEED)[0] == "seed"


def test_differences_are_over_tasks_that_both_finished() -> None:
    mine: dict[str, int | None] = {"a": None, "b": 0, "c": 0}
    rows = standings([SEED, CHILD], {"seed": mine, "g1-c1": {"a": 1, "b": 1, "c": None}})
    assert (rows[0].tasks, rows[0].rar, rows[0].behind) == (2, 0.0, 1.0)


def test_a_finalist_without_an_outcome_cannot_win() -> None:
    lost: dict[str, int | None] = {"a": None}
    rows = standings([SEED, CHILD], {"seed": lost, "g1-c1": {"a": 0}})
    assert rows[0].rar is None and not rows[0].eligible
    assert winner_of(rows, SEED)[0] == "g1-c1"


def test_without_a_selection_the_incumbent_wins() -> None:
    assert winner_of((), CHILD)[0] == "g1-c1"
