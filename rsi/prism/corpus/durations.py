"""Durations: read a text such as `1h30m` and give whole minutes."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rsi.prism.corpus.blocks import Clauses, Holes, contract, facets_of, program
from rsi.prism.corpus.family import Facets, Family, altered

CLAUSES: Clauses = {
    "units": {
        "hms": "The units are `h`, `m` and `s`; a day has no letter.",
        "dhms": "The units are `d` (24 hours), `h`, `m` and `s`.",
    },
    "order": {
        "falling": "Each unit appears at most once, and larger units stand before smaller ones; "
        "any other text is malformed.",
        "once": "Units may stand in any order, but a unit that appears twice is malformed.",
        "adding": "Units may stand in any order, and a unit that appears twice counts twice.",
    },
    "rounding": {
        "down": "The total is cut down to whole minutes: 59 seconds are `0`.",
        "up": "The total is rounded up to whole minutes: one second is `1`.",
        "half-up": "The total is rounded to the nearest minute, 30 seconds over going up.",
    },
    "letters": {
        "any-case": "Capital and small unit letters mean the same.",
        "small": "Unit letters are small; a capital letter is malformed.",
    },
    "bare": {
        "minutes": "A text of digits only, without any unit, is a number of minutes.",
        "malformed": "A text of digits only, without any unit, is malformed.",
    },
    "failure": {
        "value-error": "For a malformed text, the empty one included, raise `ValueError`.",
        "none": "For a malformed text, the empty one included, return `None`.",
        "minus-one": "For a malformed text, the empty one included, return `-1`.",
    },
}

_ROUNDED = {
    "down": "{0} // 60",
    "up": "-(-{0} // 60)",
    "half-up": "({0} + 30) // 60",
}
# fmt: off
HOLES: Holes = {
    "letters": ("units", {"hms": "hms", "dhms": "dhms"}),
    "sizes": ("units", {"hms": '{"h": 3600, "m": 60, "s": 1}',
        "dhms": '{"d": 86400, "h": 3600, "m": 60, "s": 1}'}),
    "pairs": ("units", {"hms": '[("s", 1), ("m", 60), ("h", 3600)]',
        "dhms": '[("s", 1), ("m", 60), ("h", 3600), ("d", 24 * 3600)]'}),
    "fold": ("letters", {"any-case": "text = text.lower()", "small": ""}),
    "fail": ("failure", {"value-error": 'raise ValueError(f"not a duration: {text!r}")',
        "none": "return None", "minus-one": "return -1"}),
    "bare": ("bare", {"minutes": "if text.isdigit():\n    return int(text)", "malformed": ""}),
    "rounded": ("rounding", {key: form.format("total") for key, form in _ROUNDED.items()}),
    "rounded_seconds": (
        "rounding",
        {key: form.format("seconds") for key, form in _ROUNDED.items()},
    ),
    "misordered": ("order", {"falling": "sizes != sorted(set(sizes), reverse=True)",
        "once": "len(set(sizes)) < len(sizes)", "adding": "not sizes"}),
    "refuse_unit": ("order", {
        "falling": "if used and SIZES[char] >= SIZES[used[-1]]:\n    <<fail>>",
        "once": "if char in used:\n    <<fail>>", "adding": ""}),
    "remaining": ("order", {"falling": "allowed[allowed.index(unit) + 1 :]",
        "once": 'allowed.replace(unit, "")', "adding": "allowed"}),
    "acceptable": ("order", {
        "falling": "all(SIZES[a] > SIZES[b] for a, b in zip(units, units[1:]))",
        "once": "all(units.count(unit) == 1 for unit in units)",
        "adding": "all(unit in SIZES for unit in units)"}),
    "left_of": ("order", {"falling": "waiting = [pair for pair in waiting if pair[1] > size]",
        "once": "waiting = [pair for pair in waiting if pair[0] != letter]", "adding": ""}),
}
# fmt: on

PATTERN = '''
import re

SIZES = <<sizes>>


def <<entry>>(text):
    """Give the whole minutes of a text such as 1h30m."""
    <<fold>>
    <<bare>>
    if not re.fullmatch(r"([0-9]+[<<letters>>])+", text):
        <<fail>>
    parts = re.findall(r"([0-9]+)([<<letters>>])", text)
    sizes = [SIZES[unit] for _, unit in parts]
    if <<misordered>>:
        <<fail>>
    total = sum(int(number) * SIZES[unit] for number, unit in parts)
    return <<rounded>>
'''

SCAN = """
SIZES = <<sizes>>


def <<entry>>(text):
    <<fold>>
    <<bare>>
    total = 0
    number = None
    used = []
    for char in text:
        if char in "0123456789":
            number = (number or 0) * 10 + int(char)
        elif char in SIZES and number is not None:
            <<refuse_unit>>
            used.append(char)
            total += number * SIZES[char]
            number = None
        else:
            <<fail>>
    if number is not None or not used:
        <<fail>>
    return <<rounded>>
"""

RECURSE = '''
import re

SIZES = <<sizes>>


def seconds_in(text, allowed):
    """Seconds of a text whose units are among `allowed`; None when it is malformed."""
    head = re.match("([0-9]+)([a-z])", text)
    if head is None or head.group(2) not in allowed:
        return None
    unit = head.group(2)
    here = int(head.group(1)) * SIZES[unit]
    rest = text[head.end() :]
    if rest == "":
        return here
    later = seconds_in(rest, <<remaining>>)
    return None if later is None else here + later


def <<entry>>(text):
    <<fold>>
    <<bare>>
    seconds = seconds_in(text, "<<letters>>")
    if seconds is None:
        <<fail>>
    return <<rounded_seconds>>
'''

GROUPED = """
from itertools import groupby

SIZES = <<sizes>>


def <<entry>>(text):
    <<fold>>
    <<bare>>
    runs = ["".join(run) for _, run in groupby(text, key=lambda char: char.isdigit())]
    numbers, units = runs[::2], runs[1::2]
    well_formed = (
        len(runs) > 0
        and len(numbers) == len(units)
        and all(map(str.isdigit, numbers))
        and set(units) <= set(SIZES)
    )
    if not (well_formed and <<acceptable>>):
        <<fail>>
    total = 0
    for number, unit in zip(numbers, units):
        total += int(number) * SIZES[unit]
    return <<rounded>>
"""

BACKWARD = """
class Malformed(Exception):
    pass


def take_last(text, waiting):
    for letter, size in waiting:
        if text.endswith(letter):
            break
    else:
        raise Malformed
    text = text[:-1]
    start = len(text)
    while start > 0 and text[start - 1].isdigit():
        start -= 1
    if start == len(text):
        raise Malformed
    <<left_of>>
    return text[:start], int(text[start:]) * size, waiting


def <<entry>>(text):
    <<fold>>
    <<bare>>
    waiting = <<pairs>>
    try:
        rest, seconds, waiting = take_last(text, waiting)
        while rest:
            rest, more, waiting = take_last(rest, waiting)
            seconds = seconds + more
    except Malformed:
        seconds = None
    if seconds is None:
        <<fail>>
    return <<rounded_seconds>>
"""


def _entry(facets: Facets) -> str:
    return "to_minutes" if facets["bare"] == "minutes" else "parse_duration"


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    fixed = ["", "90", "0", "7", "1h", "2m", "59s", "60s", "1s", "30s", "29s", "31s", "0s", "0h"]
    fixed += ["1h30m", "1h30m15s", "1h30m45s", "30m1h", "1m1m", "30s30s", "2h3s", "15s2h", "61m"]
    fixed += ["1d", "1d2h", "2h1d", "1d1d", "1d30s", "1H", "1h30M", "1D", "2H15m", "1h30", "h"]
    fixed += ["1x", "1h m", "-5m", "1.5h", "m5", "1hm", "10h5m", "120m", "007m", "20s5m", "1h2m3h"]
    fixed += ["x1h", "90s", "5m90s", "1m 5s", "12h34m56s"]
    drawn = [
        "".join(f"{rng.randint(0, 70)}{unit}" for unit in "hms"[rng.randint(0, 2) :])
        for _ in range(6)
    ]
    return [(text,) for text in [*fixed, *drawn]]


_source = partial(program, holes=HOLES, entry_point=_entry)
_pattern, _scan, _recurse = _source(PATTERN), _source(SCAN), _source(RECURSE)
_grouped, _backward = _source(GROUPED), _source(BACKWARD)

FAMILY = Family(
    name="durations",
    split="train",
    entry_point=_entry,
    facets=facets_of(CLAUSES),
    instruction=contract(
        "Write `<<entry>>(text)` in `solution.py`. It reads a duration, which is one or more "
        "parts, each a whole number directly followed by a unit letter, and gives the whole "
        "minutes as an integer. Signs, blanks, decimal points and other characters are malformed.",
        CLAUSES,
        _entry,
    ),
    algorithms=(_pattern, _scan, _recurse, _grouped, _backward),
    slips=(
        altered(_pattern, "re.fullmatch(", "re.match("),
        altered(_scan, "if number is not None or not used:", "if not used:"),
        altered(_scan, "if number is not None or not used:", "if number is not None:"),
        altered(_scan, "(number or 0) * 10 + int(char)", "int(char)"),
        altered(_recurse, "return None if later is None else here + later", "return here"),
        altered(_grouped, '"m": 60', '"m": 1'),
        altered(
            altered(_backward, "    if start == len(text):\n        raise Malformed\n", ""),
            "int(text[start:])",
            'int(text[start:] or "1")',
        ),
    ),
    inputs=_inputs,
)
