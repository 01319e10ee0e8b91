"""Programs that may enter a panel: algorithms, misread contracts and slips, with their results."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Any

from rsi.digest import seed_of
from rsi.errors import BenchmarkError
from rsi.prism.corpus.family import Facets, Family
from rsi.prism.corpus.running import Overrun, Result, observe
from rsi.prism.corpus.siblings import SEED, Calls, mutation_check, value_check


@dataclass(frozen=True)
class Origin:
    """How a source is made: an algorithm or slip by index, with some facets misread."""

    base: str
    index: int
    misread: tuple[tuple[str, str], ...] = ()

    def source(self, family: Family, facets: Facets) -> str:
        """Render the source of module `solution`, always under the sibling's own function name."""
        makers = family.algorithms if self.base == "algorithm" else family.slips
        read = {**facets, **dict(self.misread)}
        name, right = family.entry_point(read), family.entry_point(facets)
        return re.sub(rf"\b{re.escape(name)}\b", right, makers[self.index](read))

    def __str__(self) -> str:
        wrong = [f"{facet} read as {value}" for facet, value in self.misread]
        return ", ".join([f"{self.base} {self.index}", *wrong])

    def to_json(self) -> dict[str, Any]:
        return {"base": self.base, "index": self.index, "misread": dict(self.misread)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Origin:
        return cls(value["base"], value["index"], tuple(value["misread"].items()))


@dataclass(frozen=True)
class Candidate:
    """A source with its results on the pool; `failed` are positions in it, `changed` too."""

    origin: Origin
    source: str
    results: tuple[Result, ...]
    failed: frozenset[int]
    changed: frozenset[int]

    def failed_checks(self, calls: Calls) -> frozenset[str]:
        """The ids of the checks this source fails."""
        checked = len(calls.checked)
        values = {value_check(i) for i in self.failed if i < checked}
        return frozenset(values | {mutation_check(i) for i in self.changed})

    @property
    def behaviour(self) -> tuple[str, ...]:
        return tuple(f"{result.key}{result.mutated}" for result in self.results)


def examine(
    family: Family, facets: Facets, origin: Origin, calls: Calls, want: tuple[Result, ...]
) -> Candidate | None:
    """Run one origin on the pool; None when it does not come back from some call."""
    source = origin.source(family, facets)
    try:
        results = observe(source, family.entry_point(facets), calls.pool)
    except Overrun:
        return None
    failed = frozenset(
        i for i, (got, good) in enumerate(zip(results, want, strict=True)) if not got.agrees(good)
    )
    changed = frozenset(i for i in calls.mutations if results[i].mutated)
    return Candidate(origin, source, results, failed, changed)


def valid_programs(family: Family, facets: Facets, calls: Calls) -> tuple[Candidate, ...]:
    """Run every algorithm: reference first, then the others; raises BenchmarkError on a quarrel.

    All must give equal values of equal types, raise the same errors and leave arguments alone.
    """
    name = family.entry_point(facets)
    want = observe(family.algorithms[0](facets), name, calls.pool)
    programs = []
    for index in range(len(family.algorithms)):
        origin = Origin("algorithm", index)
        found = examine(family, facets, origin, calls, want)
        if found is None:
            raise BenchmarkError(f"kata family {family.name}: {origin} never returns ({facets})")
        for call, got, good in zip(calls.pool, found.results, want, strict=True):
            if got.mutated or got.error != good.error or not _same(got.value, good.value):
                raise BenchmarkError(
                    f"kata family {family.name}: {origin} gives {got}, the reference {good} "
                    f"on {call!r} with {dict(facets)}"
                )
        programs.append(found)
    return tuple(programs)


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(one == other)


def wrong_programs(
    family: Family, facets: Facets, calls: Calls, want: tuple[Result, ...]
) -> tuple[Candidate, ...]:
    """Run misreads (one a facet value), slips, and slips that also misread one facet.

    Only those that fail a check are given; algorithms take turns by seed.
    """
    rng = random.Random(seed_of(SEED, family.name, sorted(facets.items()), "wrong"))
    turns = list(range(len(family.algorithms)))
    rng.shuffle(turns)
    misreads = [
        (facet, value)
        for facet, values in family.facets.items()
        for value in values
        if value != facets[facet]
    ]
    slips = range(len(family.slips))
    origins = [
        Origin("algorithm", turns[i % len(turns)], (wrong,)) for i, wrong in enumerate(misreads)
    ]
    origins += [Origin("slip", i) for i in slips]
    origins += [Origin("slip", rng.choice(slips), (wrong,)) for wrong in misreads]
    found = [examine(family, facets, origin, calls, want) for origin in origins]
    return tuple(c for c in found if c is not None and c.failed_checks(calls))
