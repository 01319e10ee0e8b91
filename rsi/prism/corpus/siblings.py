"""Which facet combinations of a family become tasks, and on which calls they are checked."""

from __future__ import annotations

import random
from itertools import product

from rsi.digest import seed_of
from rsi.prism.corpus.family import Facets, Family
from rsi.prism.corpus.running import Arguments, mutable

SEED = 42
DRAWS = 4
POOL = 150
MUTATION_CHECKS = 4


def distance(one: Facets, other: Facets) -> int:
    """Count the facets in which two siblings differ."""
    return sum(one[facet] != other[facet] for facet in one)


def combinations(family: Family, count: int) -> tuple[dict[str, str], ...]:
    """Choose up to `count` facet combinations, any two of which differ in two facets or more.

    Greedy over seeded shuffles; the first shuffle that gives enough, else the best of 100.
    """
    everything = [
        dict(zip(family.facets, values, strict=True)) for values in product(*family.facets.values())
    ]
    best: list[dict[str, str]] = []
    for attempt in range(100):
        random.Random(seed_of(SEED, family.name, "facets", attempt)).shuffle(everything)
        chosen: list[dict[str, str]] = []
        for facets in everything:
            if all(distance(facets, other) >= 2 for other in chosen):
                chosen.append(facets)
        best = max(best, chosen, key=len)
        if len(best) >= count:
            break
    return tuple(best[:count])


class Calls:
    """The argument tuples of a family: `checked` feed the verifier, `spare` only examples.

    `mutations` are the positions in `checked` after which arguments are looked at as well.
    """

    def __init__(self, family: Family) -> None:
        seen: set[str] = set()
        draws: list[list[Arguments]] = []
        for draw in range(DRAWS):
            drawn = family.inputs(random.Random(seed_of(SEED, family.name, "inputs", draw)))
            draws.append([call for call in drawn if repr(call) not in seen])
            seen.update(map(repr, draws[-1]))
        unique = {repr(call): call for call in draws[0]}
        self.checked = tuple(unique.values())
        spare = {repr(call): call for drawn in draws[1:] for call in drawn}
        self.spare = tuple(spare.values())[: max(0, POOL - len(self.checked))]
        self.mutations = self._mutations()

    @property
    def pool(self) -> tuple[Arguments, ...]:
        return self.checked + self.spare

    def _mutations(self) -> tuple[int, ...]:
        able = [i for i, arguments in enumerate(self.checked) if mutable(arguments)]
        able.sort(key=lambda i: -len(repr(self.checked[i])))
        return tuple(sorted(able[:MUTATION_CHECKS]))
