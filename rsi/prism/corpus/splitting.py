"""Kata family: round an amount of money and split it into parts."""

from __future__ import annotations

import random
from typing import Any

from rsi.prism.corpus.family import Facets, Family, altered
from rsi.prism.corpus.splitting_programs import (
    CLASSES,
    DEALING,
    DECIMAL,
    DIGITS,
    RECURSIVE,
    entry_point,
)

_ROUNDING = {
    "even": "An amount half-way between two cents is rounded to the even one.",
    "up": "An amount half-way between two cents is rounded away from zero.",
    "down": "Anything smaller than a cent is cut off, towards zero.",
}
_REMAINDER = {
    "first": "Cents that cannot be shared equally go to the first parts, one each.",
    "last": "Cents that cannot be shared equally go to the last parts, one each.",
    "single": "Cents that cannot be shared equally all go to the first part.",
}


def _instruction(facets: Facets) -> str:
    negative = (
        "An amount below zero is split like its opposite, and every part gets a minus sign."
        if facets["negative"] == "mirror"
        else "An amount below zero raises `ValueError`, also when it would round to zero."
    )
    nobody = (
        "With 0 parts or fewer the result is an empty list, after all checks of the amount."
        if facets["nobody"] == "empty"
        else "With 0 parts or fewer `ValueError` is raised."
    )
    output = (
        "The parts are integers, in cents."
        if facets["output"] == "cents"
        else 'The parts are texts with two decimals (`"0.05"`, `"12.30"`, `"-1.00"`); a part of '
        'nothing is `"0.00"`.'
    )
    return (
        f"Write `{entry_point(facets)}(amount, parts)`. `amount` is a text such as "
        f'`"12.345"`, with a '
        f"point and any number of decimals or with neither, and perhaps a minus sign in front. It "
        f"is rounded to whole cents and then split into `parts` parts, in order, which sum up to "
        f"the rounded amount.\n\n- {_ROUNDING[facets['rounding']]}\n"
        f"- {_REMAINDER[facets['remainder']]}\n- {negative}\n- {nobody}\n- {output}"
    )


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = [("0", 3), ("10", 3), ("10.00", 4)]
    calls += [("0.05", 2), ("0.05", 3), ("0.01", 4)]
    calls += [
        ("100.01", 2),
        ("1.005", 1),
        ("1.015", 1),
        ("1.0051", 1),
        ("1.0149", 2),
        ("2.675", 3),
        ("0.995", 2),
        ("0.004", 2),
        ("0.005", 2),
        ("0.009", 1),
        ("7.5", 7),
        ("8.", 3),
        ("-10.00", 4),
        ("-10", 3),
        ("-0.05", 2),
        ("-1.005", 1),
        ("-1.015", 2),
        ("-0.019", 1),
        ("-0.004", 2),
        ("5", 0),
        ("-5", 0),
        ("5", -1),
        ("0.02", 5),
        ("999.99", 8),
    ]
    for _ in range(24):
        places = rng.choice((0, 1, 2, 2, 3, 3, 4))
        number = f"{rng.randint(0, 250)}"
        if places:
            number += "." + "".join(rng.choice("0123456789") for _ in range(places))
        if places == 3 and rng.random() < 0.5:
            number = number[:-1] + "5"
        minus = "-" if rng.random() < 0.12 and float(number) > 0.02 else ""
        calls.append((minus + number, rng.randint(1, 9)))
    return calls


FAMILY = Family(
    name="splitting",
    split="test",
    entry_point=entry_point,
    facets={
        "rounding": ("even", "up", "down"),
        "remainder": ("first", "last", "single"),
        "negative": ("mirror", "error"),
        "nobody": ("empty", "error"),
        "output": ("cents", "texts"),
    },
    instruction=_instruction,
    algorithms=(DECIMAL, DIGITS, DEALING, RECURSIVE, CLASSES),
    slips=(
        altered(
            DECIMAL,
            "int((abs(value) * 100).quantize",
            "int((abs(Decimal(float(amount))) * 100).quantize",
        ),
        altered(DIGITS, 'tail = decimals[2:] or "0"', 'tail = decimals[2:3] or "0"'),
        altered(DIGITS, 'decimals.ljust(2, "0")', 'decimals.rjust(2, "0")'),
        altered(DEALING, "turn % parts", "(turn + 1) % parts"),
        altered(
            DEALING,
            "        left -= 1\n        turn += 1\n",
            "        left -= 1\n        turn += 2\n",
        ),
        altered(CLASSES, "if parts < 1:", "if parts == 0:"),
        altered(
            CLASSES,
            "share, rest = self.cents // parts, self.cents % parts",
            "share, rest = self.cents // parts, self.cents % parts % 2",
        ),
        altered(
            RECURSIVE,
            "dealt = tuple(-part for part in dealt)",
            "dealt = tuple(-part for part in reversed(dealt))",
        ),
        altered(DECIMAL, "divmod(cents, parts)", "round(cents / parts), cents % parts"),
    ),
    inputs=_inputs,
)
