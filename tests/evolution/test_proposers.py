from __future__ import annotations

from collections import Counter
from random import Random

from evolution.archive import Archive, Observation
from evolution.candidate import Candidate, seed_candidate
from evolution.edits import apply_edits, changed_fields
from evolution.evidence import Evidence
from evolution.proposers import (
    Credit,
    CrossoverProposer,
    Material,
    RandomProposer,
    allot,
    credits_of,
    pool,
)
from evolution.reflector import SymptomReflector
from rsi.strategy import BOUNDS, Strategy
from rsi.trajectory import Symptoms
from tests.evolution.worlds import candidate

SEED = seed_candidate(Strategy())


def material(parent: Candidate = SEED, mate: Candidate | None = None) -> Material:
    symptoms = Symptoms(steps_exhausted=1)
    return Material(parent, mate, Evidence(rollouts=1, failed=1, symptoms=symptoms))


def test_random_changes_one_or_two_numbers_within_bounds() -> None:
    sizes: Counter[int] = Counter()
    reached: dict[str, set[int]] = {name: set() for name in BOUNDS}
    for seed in range(600):
        proposal = RandomProposer().propose(material(), 0, Random(seed))
        assert proposal is not None
        child = apply_edits(SEED.strategy, proposal)
        sizes[len(changed_fields(SEED.strategy, child))] += 1
        for name in BOUNDS:
            reached[name].add(getattr(child, name))
    assert set(sizes) == {1, 2} and min(sizes.values()) > 200
    assert reached["max_rounds"] == {0, 1, 2, 3, 4}
    low = sum(v < 1_000 for v in reached["tool_output_chars"])
    # uniform in the logarithm: a third of the draws lie below a twentieth of the range
    assert 0.2 < low / len(reached["tool_output_chars"]) < 0.5


def test_random_moves_off_a_bound() -> None:
    top = seed_candidate(Strategy(**{name: high for name, (_, high) in BOUNDS.items()}))
    for seed in range(200):
        proposal = RandomProposer().propose(material(top), 0, Random(seed))
        assert proposal is not None
        apply_edits(top.strategy, proposal)


def test_crossover_takes_some_fields_of_the_mate_and_never_all() -> None:
    mate = candidate("g1-c9", strategy=Strategy(agent_steps=20, max_rounds=3, review_guidance="x"))
    differing = set(changed_fields(SEED.strategy, mate.strategy))
    seen = set()
    for seed in range(60):
        proposal = CrossoverProposer().propose(material(mate=mate), 0, Random(seed))
        assert proposal is not None
        child = apply_edits(SEED.strategy, proposal)
        taken = changed_fields(SEED.strategy, child)
        assert set(taken) < differing
        assert all(getattr(child, name) == getattr(mate.strategy, name) for name in taken)
        seen.add(taken)
    assert len(seen) == 6


def test_crossover_declines_without_a_mate_or_with_one_difference() -> None:
    near = candidate("g1-c9", strategy=Strategy(agent_steps=20))
    for mate in (None, near):
        assert CrossoverProposer().propose(material(mate=mate), 0, Random(0)) is None


def test_the_pool_follows_the_plan() -> None:
    made = pool(("random", "reflector", "symptoms", "crossover"), SymptomReflector())
    assert list(made) == ["random", "reflector", "symptoms", "crossover"]
    for name in ("reflector", "symptoms"):
        proposal = made[name].propose(material(), 0, Random(0))
        assert proposal is not None and proposal.edits[0].name == "agent_steps"


def test_every_proposer_has_a_place_and_the_rest_go_by_credit() -> None:
    names = ("reflector", "crossover", "random")
    credit = {
        "reflector": Credit(screened=20, better=20),
        "crossover": Credit(screened=20, better=0),
        "random": Credit(),
    }
    places: Counter[str] = Counter()
    for seed in range(100):
        given = allot(names, 8, credit, 1, Random(seed))
        assert len(given) == 8 and given[:3] == names
        places.update(given[3:])
    assert places["reflector"] > places["random"] > places["crossover"]


def test_who_is_first_changes_when_there_are_fewer_places_than_proposers() -> None:
    names = ("reflector", "crossover", "random")
    credit = {name: Credit() for name in names}
    firsts = [allot(names, 1, credit, generation, Random(0)) for generation in (1, 2, 3, 4)]
    assert firsts == [("reflector",), ("crossover",), ("random",), ("reflector",)]


def test_credit_counts_the_first_screening_of_each_child() -> None:
    archive = Archive((SEED,))
    for n, (gains, losses) in enumerate([(3, 1), (1, 3), (2, 2)]):
        child = candidate(f"g1-c{n}", strategy=Strategy(agent_steps=11 + n))
        archive = archive.with_candidate(child)
        for factor in (1, 2):
            observation = Observation(
                generation=factor, stage="screening", baseline_id="seed", baseline_gain=0.0,
                tasks=10, gains=gains * factor, losses=losses,
            )  # fmt: skip
            archive = archive.with_observation(child.candidate_id, observation)
    credit = credits_of(archive, ("random", "crossover"))
    assert credit["random"].screened == 3
    assert credit["random"].better == 1
    assert abs(credit["random"].mean_difference) < 1e-12
    assert credit["crossover"] == Credit()
    assert credit["random"].weight == 2 / 5
