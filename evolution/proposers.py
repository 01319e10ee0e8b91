"""Who proposes children: reflectors, crossover and chance, in one race with credit counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import expm1, log1p
from random import Random
from typing import Protocol

from pydantic import Field

from evolution.archive import Archive
from evolution.candidate import Candidate
from evolution.edits import Proposal, changed_fields, edit_of
from evolution.evidence import Evidence
from evolution.reflector import Reflector, SymptomReflector
from rsi.strategy import BOUNDS
from rsi.wire import Record


@dataclass(frozen=True)
class Material:
    """What a proposal is made from: the parent, evidence of its failures, another lineage."""

    parent: Candidate
    mate: Candidate | None
    evidence: Evidence


class Proposer(Protocol):
    """Proposes the index-th child of its kind in a generation; None declines."""

    def propose(self, material: Material, index: int, rng: Random) -> Proposal | None: ...


@dataclass(frozen=True)
class ReflectorProposer:
    """Hands the parent's evidence to a reflector."""

    reflector: Reflector

    def propose(self, material: Material, index: int, rng: Random) -> Proposal | None:
        return self.reflector.propose(material.evidence, material.parent, index, rng)


class CrossoverProposer:
    """Takes some of the fields in which another good lineage differs, never all of them."""

    def propose(self, material: Material, index: int, rng: Random) -> Proposal | None:
        if material.mate is None:
            return None
        mine, theirs = material.parent.strategy, material.mate.strategy
        differing = changed_fields(mine, theirs)
        if len(differing) < 2:
            return None
        taken = sorted(rng.sample(differing, rng.randint(1, len(differing) - 1)))
        why = f"as in {material.mate.candidate_id}"
        edits = tuple(edit_of(mine, name, getattr(theirs, name), why) for name in taken)
        return Proposal(diagnosis=f"crossover with {material.mate.candidate_id}", edits=edits)


class RandomProposer:
    """Draws one or two numeric fields anew, uniform in log(1 + value) within their bounds."""

    def propose(self, material: Material, index: int, rng: Random) -> Proposal | None:
        strategy = material.parent.strategy
        names = rng.sample(sorted(BOUNDS), rng.randint(1, 2))
        edits = tuple(
            edit_of(strategy, name, _drawn(name, getattr(strategy, name), rng), "random")
            for name in names
        )
        return Proposal(diagnosis="random change", edits=edits)


def _drawn(name: str, current: int, rng: Random) -> int:
    lower, upper = BOUNDS[name]
    value = round(expm1(rng.uniform(log1p(lower), log1p(upper))))
    value = min(upper, max(lower, value))
    if value != current:
        return value
    return current + 1 if current < upper else current - 1


def pool(names: Iterable[str], reflector: Reflector) -> dict[str, Proposer]:
    """The proposers of a plan by name, in its order."""
    known: dict[str, Proposer] = {
        "reflector": ReflectorProposer(reflector),
        "symptoms": ReflectorProposer(SymptomReflector()),
        "crossover": CrossoverProposer(),
        "random": RandomProposer(),
    }
    return {name: known[name] for name in names}


class Credit(Record):
    """What a proposer has to show: children screened, how many beat their incumbent, mean gain."""

    screened: int = Field(0, ge=0)
    better: int = Field(0, ge=0)
    mean_difference: float = 0.0

    @property
    def weight(self) -> float:
        """Smoothed share of children that looked better than the incumbent."""
        return (1 + self.better) / (2 + self.screened)


def credits_of(archive: Archive, names: Iterable[str]) -> dict[str, Credit]:
    """Count each proposer's children by their first screening."""
    differences: dict[str, list[float]] = {name: [] for name in names}
    for candidate in archive.candidates:
        seen = [o for o in archive.observed(candidate.candidate_id) if o.tasks]
        if seen and candidate.proposer in differences:
            first = seen[0]
            differences[candidate.proposer].append((first.gains - first.losses) / first.tasks)
    return {
        name: Credit(
            screened=len(values),
            better=sum(v > 0 for v in values),
            mean_difference=sum(values) / len(values) if values else 0.0,
        )
        for name, values in differences.items()
    }


def allot(
    names: Sequence[str], children: int, credit: Mapping[str, Credit], generation: int, rng: Random
) -> tuple[str, ...]:
    """Give every child's place to a proposer: each once in turn, the rest drawn by credit."""
    turn = [names[(generation - 1 + n) % len(names)] for n in range(len(names))]
    rest = max(0, children - len(turn))
    drawn = rng.choices(turn, [credit[name].weight for name in turn], k=rest)
    return tuple([*turn, *drawn][:children])
