"""Worked examples: how they are written, and which of them a reader gets to see where."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from rsi.prism.corpus.running import Arguments, Result

STYLES = ("doctest", "assert", "table", "arrow", "doctest-words")
PART = 14
LONGEST = 420
FEWEST, MOST = 20, 60
SMALLEST, LARGEST = 1_200, 6_800
_FENCE = {"doctest": "pycon", "doctest-words": "pycon", "assert": "python"}


@dataclass(frozen=True)
class Shown:
    """Positions in the pool of calls: those in the instruction, those in docs/examples.md."""

    instruction: tuple[int, ...]
    document: tuple[int, ...]


def example(style: str, name: str, arguments: Arguments, result: Result) -> str:
    """Write one example; errors read as a traceback or as words, by style."""
    spelled = f"{name}({', '.join(map(repr, arguments))})"
    value, error = repr(result.value), result.error
    if style == "doctest":
        trace = f"Traceback (most recent call last):\n    ...\n{error}: ..."
        return f">>> {spelled}\n{trace if error else value}"
    if style == "doctest-words":
        return f">>> {spelled}\n{f'raises {error}' if error else value}"
    if style == "assert":
        return f"# {spelled} raises {error}" if error else f"assert {spelled} == {value}"
    if style == "table":
        return f"| `{spelled}` | {f'raises `{error}`' if error else f'`{value}`'} |"
    return f"- `{spelled}` {f'raises `{error}`' if error else f'-> `{value}`'}"


def style_for(position: int, texts: Sequence[str]) -> str:
    """Pick a family's style by turn; code cells cannot hold pipes, code spans no backticks."""
    style = STYLES[position % len(STYLES)]
    joined = "".join(texts)
    if style in ("table", "arrow") and "`" in joined:
        return "assert"
    return "arrow" if style == "table" and "|" in joined else style


def block(style: str, name: str, lines: Sequence[str]) -> str:
    """Set examples as one Markdown block."""
    if style == "table":
        return "\n".join(["| call | result |", "| --- | --- |", *lines])
    if style == "arrow":
        return "\n".join(lines)
    start = f">>> from solution import {name}\n" if style.startswith("doctest") else ""
    return f"```{_FENCE[style]}\n{start}" + "\n".join(lines) + "\n```"


def document(style: str, name: str, lines: Sequence[str]) -> str:
    """Write docs/examples.md: all lines in order, in numbered parts."""
    parts = [f"# Worked examples for `{name}`"]
    for number, start in enumerate(range(0, len(lines), PART), 1):
        parts.append(f"## Part {number}")
        parts.append(block(style, name, lines[start : start + PART]))
    return "\n\n".join(parts) + "\n"


@dataclass(frozen=True)
class Exposure:
    """What decides which calls are shown: positions on which b or some invalid program fails.

    `deciding` holds, for each misread facet value, the positions where it shows; `errors` are
    the positions where the reference raises.
    """

    checked: int
    initial: frozenset[int]
    invalid: tuple[frozenset[int], ...]
    deciding: tuple[frozenset[int], ...]
    errors: frozenset[int]


class ExampleChooser:
    """Choose what is shown, so that examples alone catch most wrong programs but not all."""

    def __init__(self, lines: Sequence[str], exposure: Exposure, rng: random.Random) -> None:
        self.lines = lines
        self.exposure = exposure
        self.rng = rng

    def choose(self, placement: str) -> Shown:
        """Place examples that fail on b: nowhere (`none`), in the `middle` of the document only,
        or anywhere (`open`)."""
        allowed = self._allowed()
        telling = [i for i in allowed if i in self.exposure.initial]
        if not telling:
            telling = sorted(self.exposure.initial, key=lambda i: len(self.lines[i]))[:2]
        telling = [] if placement == "none" else telling
        self.rng.shuffle(telling)
        silent = self._fewer_errors([i for i in allowed if i not in self.exposure.initial])
        opening = silent[: self.rng.choice((2, 3))]
        rest = silent[len(opening) :]
        self.rng.shuffle(rest)
        if placement == "middle":
            shown = self._brief(telling, 4)
            return Shown(tuple(opening), self._with_middle(self._fitting(rest, shown), shown))
        shown = self._brief(telling, max(4, len(silent) // 3))
        if len(shown) > 1 and self.rng.random() < 0.5:
            opening[0] = shown.pop()
        place = [*self._fitting([i for i in rest if i not in opening], shown), *shown]
        self.rng.shuffle(place)
        return Shown(tuple(opening), tuple(place))

    def _allowed(self) -> list[int]:
        held: set[int] = set()
        for positions in self.exposure.deciding:
            checked = sorted(i for i in positions if i < self.exposure.checked)
            held.update(self.rng.sample(checked, len(checked) // 2))
        pool = [i for i, line in enumerate(self.lines) if i not in held and len(line) <= LONGEST]
        hide = self.rng.choices((0, 1, 2), (0.15, 0.55, 0.3))[0]
        quiet = sorted(self.exposure.invalid, key=len)[:hide]
        for failed in quiet:
            rest = [i for i in pool if i not in failed]
            if len([i for i in rest if i not in self.exposure.initial]) >= FEWEST + 6:
                pool = rest
        return pool

    def _fewer_errors(self, silent: Sequence[int]) -> list[int]:
        """Shuffle, values first; errors are at most a third where values suffice."""
        values = [i for i in silent if i not in self.exposure.errors]
        errors = [i for i in silent if i in self.exposure.errors]
        self.rng.shuffle(values)
        self.rng.shuffle(errors)
        return values + errors[: max(len(values) // 2, FEWEST + 6 - len(values))]

    def _brief(self, telling: Sequence[int], most: int) -> list[int]:
        kept: list[int] = []
        for i in telling[:most]:
            if not kept or sum(len(self.lines[k]) for k in [*kept, i]) <= LARGEST // 4:
                kept.append(i)
        return kept

    def _fitting(self, positions: Sequence[int], beside: Sequence[int]) -> tuple[int, ...]:
        """Cut to a seeded size; with those `beside`, 20 to 60 examples where the size allows."""
        target = self.rng.randint(SMALLEST, LARGEST)
        kept: list[int] = []
        size = 200 + sum(len(self.lines[i]) + 2 for i in beside)
        for i in positions:
            line = len(self.lines[i]) + 2
            count = len(kept) + len(beside)
            if count >= MOST or (size >= target and count >= FEWEST):
                break
            if size + line <= LARGEST:
                kept.append(i)
                size += line
        return tuple(kept)

    def _with_middle(self, body: Sequence[int], telling: Sequence[int]) -> tuple[int, ...]:
        """Put the telling examples about half-way, measured in characters."""
        total = sum(len(self.lines[i]) for i in body)
        size, cut = 0, 0
        while cut < len(body) and size + len(self.lines[body[cut]]) / 2 < total / 2:
            size += len(self.lines[body[cut]])
            cut += 1
        return (*body[:cut], *telling, *body[cut:])
