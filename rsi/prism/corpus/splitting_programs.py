"""Programs of the kata family splitting, alike in behaviour for the same facets."""

from __future__ import annotations

from rsi.prism.corpus.family import Facets, template


def entry_point(facets: Facets) -> str:
    return "split_amount" if facets["output"] == "cents" else "share_bill"


def _holes(facets: Facets) -> dict[str, str]:
    rounding, remainder = facets["rounding"], facets["remainder"]
    half = " + Fraction(1, 2)" if rounding == "up" else ""
    return {
        "name": entry_point(facets),
        "mode": {"even": "ROUND_HALF_EVEN", "up": "ROUND_HALF_UP", "down": "ROUND_DOWN"}[rounding],
        "carry": {
            "even": "tail > half or (tail == half and cents % 2 == 1)",
            "up": "tail >= half",
            "down": "False",
        }[rounding],
        "nudge": "round(value)" if rounding == "even" else f"int(value{half})",
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
        "shown": _shown(facets),
    }


DECIMAL = template(
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
    _holes,
)


def _shown(facets: Facets) -> str:
    if facets["output"] == "cents":
        return "part"
    return "f\"{'-' if part < 0 else ''}{abs(part) // 100}.{abs(part) % 100:02}\""


DIGITS = template(
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
    _holes,
)

DEALING = template(
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
    _holes,
)

RECURSIVE = template(
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
    _holes,
)

CLASSES = template(
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
    _holes,
)
