"""What one family of sibling tasks is made of: a contract with facets, programs and inputs."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rsi.prism.task import Split

Facets = Mapping[str, str]
Source = Callable[[Facets], str]
_HOLE = re.compile(r"<<([a-z_]+)>>")


@dataclass(frozen=True)
class Family:
    """Tasks that share a subject and differ in facets, the points a reader can get wrong.

    `algorithms` render complete sources of module `solution` that behave alike for the same
    facets ([0] is the reference); each of `slips` renders a source with one mistake.
    `inputs` gives argument tuples of JSON-like literals.
    """

    name: str
    split: Split
    entry_point: Callable[[Facets], str]
    facets: Mapping[str, tuple[str, ...]]
    instruction: Callable[[Facets], str]
    algorithms: tuple[Source, ...]
    slips: tuple[Source, ...]
    inputs: Callable[[random.Random], list[tuple[Any, ...]]]


def fill(text: str, holes: Mapping[str, str]) -> str:
    """Put values into the `<<name>>` holes of a text; raises KeyError for an unknown hole."""
    return _HOLE.sub(lambda match: holes[match.group(1)], text)


def template(text: str, holes: Callable[[Facets], Mapping[str, str]]) -> Source:
    """Make a source renderer of a text with holes that the facets decide."""
    return lambda facets: fill(text.lstrip("\n"), holes(facets))


def altered(source: Source, old: str, new: str) -> Source:
    """Make a slip of a source by one replacement; no effect where `old` does not occur."""
    return lambda facets: source(facets).replace(old, new)
