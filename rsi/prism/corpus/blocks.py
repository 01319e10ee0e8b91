"""Tables of contract sentences and code fragments, and the texts rendered from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from rsi.prism.corpus.family import Facets, Source, fill

Clauses = Mapping[str, Mapping[str, str]]
"""Facet -> value -> the sentence of the contract that states it."""

Holes = Mapping[str, tuple[str, Mapping[str, str]]]
"""Hole -> (facets that decide it, text for each value; several are joined by a blank)."""

_BLOCK = re.compile(r"^([ \t]*)<<([a-z_]+)>>[ \t]*\n", re.MULTILINE)


def facets_of(clauses: Clauses) -> dict[str, tuple[str, ...]]:
    """The facets and their values, in the order in which the contract states them."""
    return {facet: tuple(sentences) for facet, sentences in clauses.items()}


def contract(
    intro: str, clauses: Clauses, entry_point: Callable[[Facets], str]
) -> Callable[[Facets], str]:
    """Make the instruction: `intro` (hole `<<entry>>`), then one bullet for each facet."""

    def instruction(facets: Facets) -> str:
        bullets = [f"- {sentences[facets[facet]]}" for facet, sentences in clauses.items()]
        opening = fill(intro.strip(), {"entry": entry_point(facets)})
        return "\n".join([opening, "", *bullets, ""])

    return instruction


def program(text: str, holes: Holes, entry_point: Callable[[Facets], str]) -> Source:
    """Make a source renderer of a text with `<<name>>` holes.

    A hole alone on its line takes whole lines, indented like it; an empty text drops the line.
    The text for a hole may contain holes itself, one level deep.
    Raises KeyError for an unknown hole or facet value.
    """

    def render(facets: Facets) -> str:
        values = {"entry": entry_point(facets)}
        for hole, (deciding, texts) in holes.items():
            values[hole] = texts[" ".join(facets[facet] for facet in deciding.split())]

        def lines(match: re.Match[str]) -> str:
            margin, block = match.group(1), values[match.group(2)]
            return "".join(f"{margin}{line}".rstrip() + "\n" for line in block.splitlines())

        whole = fill(_BLOCK.sub(lines, text.lstrip("\n")), values)
        return fill(whole, values)

    return render
