"""Kata family: compare version numbers."""

from __future__ import annotations

import random
from typing import Any

from rsi.prism.corpus.family import Facets, Family, altered
from rsi.prism.corpus.versions_programs import CLASSES, KEYS, LOOP, RECURSIVE, SCANNER, entry_point

_TAG = {
    "before": "A version with a tag comes before the same numbers without one; two tags at the "
    "same numbers are compared as texts.",
    "ignore": "A tag has no influence on the comparison.",
    "error": "A version with a tag raises `ValueError`.",
}


def _instruction(facets: Facets) -> str:
    padding = (
        "Missing numbers at the end count as 0, so `1.2` equals `1.2.0`."
        if facets["length"] == "pad"
        else "When one list of numbers is the beginning of the other, the shorter version comes "
        "first, so `1.2` is before `1.2.0`."
    )
    answer = (
        "The result is -1 when `left` comes before `right`, 1 when it comes after, else 0."
        if facets["answer"] == "sign"
        else 'The result is `"older"` when `left` comes before `right`, `"newer"` when it comes '
        'after, else `"same"`.'
    )
    prefix = (
        "One lower-case `v` in front of a version is allowed and means nothing."
        if facets["prefix"] == "allow"
        else "A `v` in front of a version is malformed."
    )
    zeros = (
        "Zeros in front of a number mean nothing."
        if facets["zeros"] == "allow"
        else "A number of several digits that starts with 0 is malformed."
    )
    return (
        f"Write `{entry_point(facets)}(left, right)` for two versions given as texts. A version "
        f"is one "
        f"or more whole numbers (digits 0 to 9) joined by points, compared number by number from "
        f"the left; after them may stand a tag: a hyphen and one or more lower-case letters or "
        f"digits, as in `2.0-rc1`. Any other text is malformed, and a malformed version on "
        f"either side raises `ValueError`.\n\n- {padding}\n- {_TAG[facets['tag']]}\n- {prefix}\n"
        f"- {zeros}\n- {answer}"
    )


# left~right, one pair between bars
_FIXED = (
    "1.2~1.2|1.2~1.3|1.10~1.9|2~10|1.2~1.2.0|1.2.0.0~1.2|1~1.0.1|1.2.1~1.2|0~0.0|1.0-rc1~1.0|"
    "1.0~1.0-rc1|1.0-rc1~1.0-rc2|1.0-rc10~1.0-rc9|1.0-beta~1.0-alpha|1.1-a~1.0|1.0-a~1.1-b|"
    "1.0-rc1~1.0.0|1.0-a~1.0-a|v1.2~1.2|v1.3~v1.2|vv1~1|V1~1|1.02~1.2|1.2~1.03|01~1|1.00~1.0|"
    "1.~1|1..2~1|~1|1~|1.a~1|1.0-~1.0|1.0-RC~1.0|1 .0~1.0|-a~1|1~x"
)


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = [tuple(pair.split("~")) for pair in _FIXED.split("|")]
    for _ in range(22):
        sides = []
        numbers = [rng.choice((0, 1, 2, 9, 10, 11)) for _ in range(rng.randint(1, 4))]
        for _ in range(2):
            own = list(numbers)
            if rng.random() < 0.7:
                own[-1] = rng.choice((0, 1, 3, 10, 20))
            own += [0] * (rng.random() < 0.2)
            text = ".".join(map(str, own))
            text += rng.choice(("-rc1", "-dev")) if rng.random() < 0.2 else ""
            sides.append(("v" if rng.random() < 0.1 else "") + text)
        calls.append(tuple(sides))
    return calls


FAMILY = Family(
    name="versions",
    split="release",
    entry_point=entry_point,
    facets={
        "length": ("pad", "shorter"),
        "tag": ("before", "ignore", "error"),
        "prefix": ("allow", "error"),
        "zeros": ("allow", "error"),
        "answer": ("sign", "words"),
    },
    instruction=_instruction,
    algorithms=(LOOP, KEYS, CLASSES, RECURSIVE, SCANNER),
    slips=(
        altered(LOOP, "result.append(int(part))", "result.append(part)"),
        altered(LOOP, "if not one_tag:", "if one_tag:"),
        altered(KEYS, ".fullmatch(version)", ".match(version)"),
        altered(KEYS, "[(a > b) - (a < b)]", "[(a >= b) - (a <= b and a != b)]"),
        altered(
            CLASSES,
            "zip_longest(self.parts, other.parts, fillvalue=rest)",
            "zip(self.parts, other.parts)",
        ),
        altered(
            RECURSIVE,
            "return (int(first), *_numbers(rest)) if point",
            "return (int(first), *_numbers(rest)) if rest",
        ),
        altered(
            SCANNER,
            "while index < len(mine) or index < len(its):",
            "while index < min(3, max(len(mine), len(its))):",
        ),
        altered(
            SCANNER, "while index < len(mine) or index < len(its):", "while index < len(mine):"
        ),
        altered(
            RECURSIVE,
            "(left, right):\n        if text",
            "(left, right):\n        text = text.lower().strip()\n        if text",
        ),
    ),
    inputs=_inputs,
)
