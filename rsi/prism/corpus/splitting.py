"""Kata family: round an amount of money and split it into parts."""

from __future__ import annotations

import random
from typing import Any

from rsi.prism.corpus.family import Facets, Family, altered, template

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


def _name(facets: Facets) -> str:
    return "split_amount" if facets["output"] == "cents" else "share_bill"


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
        f'Write `{_name(facets)}(amount, parts)`. `amount` is a text such as `"12.345"`, with a '
        f"point and any number of decimals or with neither, and perhaps a minus sign in front. It "
        f"is rounded to whole cents and then split into `parts` parts, in order, which sum up to "
        f"the rounded amount.\n\n- {_ROUNDING[facets['rounding']]}\n"
        f"- {_REMAINDER[facets['remainder']]}\n- {negative}\n- {nobody}\n- {output}"
    )


def _holes(facets: Facets) -> dict[str, str]:
    rounding, remainder = facets["rounding"], facets["remainder"]
    cents = facets["output"] == "cents"
    return {
        "name": _name(facets),
        "mode": {"even": "ROUND_HALF_EVEN", "up": "ROUND_HALF_UP", "down": "ROUND_DOWN"}[rounding],
        "carry": {
            "even": "tail > half or (tail == half and cents % 2 == 1)",
            "up": "tail >= half",
            "down": "False",
        }[rounding],
        "nudge": {
            "even": "round(value)",
            "up": "int(value + Fraction(1, 2))",
            "down": "int(value)",
        }[rounding],
        "refuses": str(facets["negative"] == "error"),
        "nobody": "return []" if facets["nobody"] == "empty" else 'raise ValueError("no parts")',
        "extra": {
            "first": "int(i < rest)",
            "last": "int(i >= parts - rest)",
            "single": "rest if i == 0 else 0",
        }[remainder],
        "formula": {
            "first": "(cents + parts - 1 - i) // parts",
            "last": "(cents + i) // parts",
            "single": "cents // parts + (cents % parts) * (not i)",
        }[remainder],
        "seat": {"first": "turn % parts", "last": "parts - 1 - turn % parts", "single": "0"}[
            remainder
        ],
        "groups": {
            "first": "[share + 1] * rest + [share] * (parts - rest)",
            "last": "[share] * (parts - rest) + [share + 1] * rest",
            "single": "[share + rest] + [share] * (parts - 1)",
        }[remainder],
        "ask": {
            "first": "-(-cents // parts)",
            "last": "cents // parts",
            "single": "cents // parts + (cents % parts if full else 0)",
        }[remainder],
        "full": "True" if remainder == "single" else "False",
        "shown": "part"
        if cents
        else 'f"{"-" * (part < 0)}{abs(part) // 100}.{abs(part) % 100:02}"',
        "decimal_out": "int(part)" if cents else 'format(part / 100, ".2f")',
        "text": "cents" if cents else "_text(cents)",
    }


_DECIMAL = template(
    """
from decimal import <<mode>>, Decimal


def <<name>>(amount, parts):
    value = Decimal(amount)
    if value < 0 and <<refuses>>:
        raise ValueError("negative amount")
    cents = int((abs(value) * 100).quantize(Decimal(1), rounding=<<mode>>))
    if parts < 1:
        <<nobody>>
    share, rest = divmod(cents, parts)
    result = []
    for i in range(parts):
        part = share + (<<extra>>)
        if value < 0:
            part = -part
        result.append(<<shown>>)
    return result
""",
    lambda facets: {**_holes(facets), "shown": _shown(facets)},
)


def _shown(facets: Facets) -> str:
    if facets["output"] == "cents":
        return "part"
    return "f\"{'-' if part < 0 else ''}{abs(part) // 100}.{abs(part) % 100:02}\""


_DIGITS = template(
    """
def _cents(digits):
    whole, _, decimals = digits.partition(".")
    decimals = decimals.ljust(2, "0")
    cents = int(whole + decimals[:2])
    tail = decimals[2:] or "0"
    half = "5".ljust(len(tail), "0")
    return cents + 1 if <<carry>> else cents


def <<name>>(amount, parts):
    below = amount.startswith("-")
    if below and <<refuses>>:
        raise ValueError(amount)
    cents = _cents(amount.lstrip("-"))
    if parts <= 0:
        <<nobody>>
    sign = -1 if below else 1
    split = [sign * (<<formula>>) for i in range(parts)]
    return [<<shown>> for part in split]
""",
    lambda facets: {**_holes(facets), "shown": _shown(facets)},
)

_DEALING = template(
    """
from fractions import Fraction


def <<name>>(amount, parts):
    value = Fraction(amount) * 100
    sign = 1
    if value < 0:
        if <<refuses>>:
            raise ValueError("below zero")
        value, sign = -value, -1
    left = <<nudge>>
    if not parts > 0:
        <<nobody>>
    hands = [left // parts] * parts
    left -= sum(hands)
    turn = 0
    while left:
        hands[<<seat>>] += 1
        left -= 1
        turn += 1
    parts = (sign * hand for hand in hands)
    return [<<shown>> for part in parts]
""",
    lambda facets: {**_holes(facets), "shown": _shown(facets)},
)

_RECURSIVE = template(
    """
from decimal import Context, Decimal, <<mode>>


def _deal(cents, parts, full):
    if parts == 0:
        return ()
    part = <<ask>>
    return (part, *_deal(cents - part, parts - 1, False))


def <<name>>(amount, parts):
    exact = Decimal(amount)
    if <<refuses>> and exact.is_signed():
        raise ValueError("amount must not be negative")
    rounder = Context(prec=40, rounding=<<mode>>)
    cents = int(exact.copy_abs().scaleb(2).to_integral_value(context=rounder))
    if parts < 1:
        <<nobody>>
    dealt = _deal(cents, parts, <<full>>)
    if exact.is_signed():
        dealt = tuple(-part for part in dealt)
    return list(map(_show, dealt))


def _show(part):
    return <<shown>>
""",
    lambda facets: {**_holes(facets), "shown": _shown(facets)},
)

_CLASSES = template(
    """
import re


class Money:
    def __init__(self, text):
        found = re.fullmatch(r"(-?)(\\d+)(?:\\.(\\d*))?", text)
        self.minus = found[1] == "-"
        decimals = (found[3] or "") + "00"
        scale = 10 ** (len(decimals) - 2)
        self.cents, tail = divmod(int(found[2] + decimals), scale)
        cents, half = self.cents, scale / 2
        self.cents += bool(<<carry>>)

    def split(self, parts):
        share, rest = self.cents // parts, self.cents % parts
        for part in <<groups>>:
            yield -part if self.minus else part


def <<name>>(amount, parts):
    money = Money(amount)
    if money.minus and <<refuses>>:
        raise ValueError(f"{amount} is negative")
    if parts < 1:
        <<nobody>>
    result = []
    for part in money.split(parts):
        result += [<<shown>>]
    return result
""",
    lambda facets: {**_holes(facets), "shown": _shown(facets)},
)


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = [
        ("0", 3),
        ("10", 3),
        ("10.00", 4),
        ("0.05", 2),
        ("0.05", 3),
        ("0.01", 4),
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
    entry_point=_name,
    facets={
        "rounding": ("even", "up", "down"),
        "remainder": ("first", "last", "single"),
        "negative": ("mirror", "error"),
        "nobody": ("empty", "error"),
        "output": ("cents", "texts"),
    },
    instruction=_instruction,
    algorithms=(_DECIMAL, _DIGITS, _DEALING, _RECURSIVE, _CLASSES),
    slips=(
        altered(
            _DECIMAL,
            "int((abs(value) * 100).quantize",
            "int((abs(Decimal(float(amount))) * 100).quantize",
        ),
        altered(_DIGITS, 'tail = decimals[2:] or "0"', 'tail = decimals[2:3] or "0"'),
        altered(_DIGITS, 'decimals.ljust(2, "0")', 'decimals.rjust(2, "0")'),
        altered(_DEALING, "turn % parts", "(turn + 1) % parts"),
        altered(
            _DEALING,
            "        left -= 1\n        turn += 1\n",
            "        left -= 1\n        turn += 2\n",
        ),
        altered(_CLASSES, "if parts < 1:", "if parts == 0:"),
        altered(
            _CLASSES,
            "share, rest = self.cents // parts, self.cents % parts",
            "share, rest = self.cents // parts, self.cents % parts % 2",
        ),
        altered(
            _RECURSIVE,
            "dealt = tuple(-part for part in dealt)",
            "dealt = tuple(-part for part in reversed(dealt))",
        ),
        altered(_DECIMAL, "divmod(cents, parts)", "round(cents / parts), cents % parts"),
    ),
    inputs=_inputs,
)
