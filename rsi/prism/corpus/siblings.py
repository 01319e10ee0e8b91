"""Siblings: which facet combinations become tasks, their calls, checks and texts."""

from __future__ import annotations

import inspect
import random
from dataclasses import dataclass
from itertools import product

from rsi.digest import seed_of
from rsi.prism.corpus import verifier_prelude
from rsi.prism.corpus.examples import Shown, block, document, example, style_for
from rsi.prism.corpus.family import Facets, Family
from rsi.prism.corpus.running import Arguments, Result, mutable
from rsi.prism.panel import Check

SEED = 42
DRAWS = 6
POOL = 160
MUTATION_CHECKS = 4
UNCHANGED = "The function leaves its arguments unchanged."


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


def value_check(position: int) -> str:
    """The id of the check on the value of one checked call."""
    return f"c{position + 1:02}"


def mutation_check(position: int) -> str:
    """The id of the check that one checked call leaves its arguments alone."""
    return f"m{position + 1:02}"


@dataclass(frozen=True)
class Sibling:
    """One facet combination of a family with the reference's results on the pool of calls."""

    family: Family
    position: int
    number: int
    facets: Facets
    calls: Calls
    want: tuple[Result, ...]

    @property
    def task_id(self) -> str:
        return f"kata-{self.family.name}-{self.number:02}"

    @property
    def entry_point(self) -> str:
        return self.family.entry_point(self.facets)

    def checks(self) -> tuple[Check, ...]:
        """One check a checked call, then checks that arguments stay as they were."""
        name = self.entry_point
        checks = []
        for i, arguments in enumerate(self.calls.checked):
            checks.append(
                Check(check_id=value_check(i), code=_check(name, arguments, self.want[i]))
            )
        for i in self.calls.mutations:
            given = repr(self.calls.checked[i])
            code = (
                f"_given = {given}\ntry:\n    {name}(*_given)\nexcept Exception:\n    pass\n"
                f"assert _eq(_given, {given})"
            )
            checks.append(Check(check_id=mutation_check(i), code=code))
        return tuple(checks)

    def lines(self) -> tuple[str, list[str]]:
        """The style, and every call of the pool written as an example in it."""
        pairs = list(zip(self.calls.pool, self.want, strict=True))
        plain = [repr((arguments, result.value)) for arguments, result in pairs]
        style = style_for(self.position, plain)
        return style, [example(style, self.entry_point, *pair) for pair in pairs]

    def texts(self, shown: Shown) -> tuple[str, str]:
        """The instruction and docs/examples.md with the examples that are shown."""
        style, lines = self.lines()
        name = self.entry_point
        contract = [self.family.instruction(self.facets).strip()]
        if self.calls.mutations:
            contract.append(UNCHANGED)
        contract.append(f"The module is `solution.py`; the function is `{name}`.")
        contract.append("Examples (more are in `docs/examples.md`):")
        contract.append(block(style, name, [lines[i] for i in shown.instruction]))
        return "\n\n".join(contract) + "\n", document(
            style, name, [lines[i] for i in shown.document]
        )


def _check(name: str, arguments: Arguments, want: Result) -> str:
    given = ", ".join(map(repr, arguments))
    if want.error:
        return f"assert _raises({want.error}, {', '.join([name, given]).rstrip(', ')})"
    return f"assert _eq({name}({given}), {want.value!r})"


def prelude(entry_point: str) -> str:
    """The text that makes a check's names known: comparisons and the function under test."""
    text = inspect.getsource(verifier_prelude).replace("from __future__ import annotations\n\n", "")
    return f"{text}\n\nfrom solution import {entry_point}\n"
