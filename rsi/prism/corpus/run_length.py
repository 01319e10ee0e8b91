"""Kata family: run-length coding of a text."""

from __future__ import annotations

import random
from typing import Any

from rsi.prism.corpus.family import Facets, Family, altered, template

_LIMITS = {"none": "10**9", "nine": "9", "four": "4"}


def _name(facets: Facets) -> str:
    return "squeeze" if facets["place"] == "before" else "encode_runs"


def _instruction(facets: Facets) -> str:
    place = (
        "The count stands before its character (`3a`)."
        if facets["place"] == "before"
        else "The count stands after its character (`a3`)."
    )
    single = (
        "A run of length 1 is written without a count."
        if facets["single"] == "bare"
        else "A run of length 1 has its count as well."
    )
    case = (
        "Letters that differ only in case belong to different runs."
        if facets["case"] == "exact"
        else "Letters that differ only in case belong to one run, which is written with its first "
        "letter as it stands in the text."
    )
    limit = {
        "none": "A run may be of any length; counts may have several digits.",
        "nine": "A run counts at most 9: a longer one is written as runs of 9 and a rest.",
        "four": "A run counts at most 4: a longer one is written as runs of 4 and a rest.",
    }[facets["limit"]]
    digits = (
        "A digit anywhere in the text raises `ValueError`."
        if facets["digits"] == "error"
        else "A digit of the text is a character like any other, but in the code a backslash "
        "stands directly before it, once a run (three sevens are `3` and `\\7` in the order of "
        "count and character)."
    )
    return (
        f"Write `{_name(facets)}(text)`: it shortens a text by writing each run of equal "
        f"characters as a count and the character.\n\n- {place}\n- {single}\n- {case}\n"
        f"- {limit} Each written part of a long run follows all other rules as a run of its own, "
        f"starting with its own first letter.\n- {digits}\n- The empty text gives the empty text."
    )


def _holes(facets: Facets) -> dict[str, str]:
    fold = facets["case"] == "fold"
    before = facets["place"] == "before"
    bare = facets["single"] == "bare"
    number = '("" if count == 1 else str(count))' if bare else "str(count)"
    return {
        "name": _name(facets),
        "same": "last.lower() == char.lower()" if fold else "last == char",
        "key": "str.lower" if fold else "None",
        "norm": "text.lower()" if fold else "text",
        "limit": _LIMITS[facets["limit"]],
        "flags": "re.IGNORECASE | re.DOTALL" if fold else "re.DOTALL",
        "most": "" if facets["limit"] == "none" else str(int(_LIMITS[facets["limit"]]) - 1),
        "guard": 'raise ValueError("digit in text")'
        if facets["digits"] == "error"
        else 'sign = "\\\\" + char',
        "refused": "0123456789" if facets["digits"] == "error" else "",
        "number": number,
        "code": f"{number} + sign" if before else f"sign + {number}",
        "fmt": "{count}{sign}" if before else "{sign}{count}",
        "least": "2" if bare else "1",
    }


_LOOP = template(
    """
def <<name>>(text):
    runs = []
    for char in text:
        last = runs[-1][0] if runs else None
        if last is not None and <<same>> and runs[-1][1] < <<limit>>:
            runs[-1][1] += 1
        else:
            runs.append([char, 1])
    code = ""
    for char, count in runs:
        sign = char
        if char.isdigit():
            <<guard>>
        code += <<code>>
    return code
""",
    _holes,
)

_GROUPBY = template(
    """
from itertools import groupby


def _parts(length):
    while length > <<limit>>:
        yield <<limit>>
        length -= <<limit>>
    yield length


def _write(char, count):
    sign = char
    if "0" <= char <= "9":
        <<guard>>
    return <<code>>


def <<name>>(text):
    pieces = []
    for _, group in groupby(text, key=<<key>>):
        run = list(group)
        start = 0
        for count in _parts(len(run)):
            pieces.append(_write(run[start], count))
            start += count
    return "".join(pieces)
""",
    _holes,
)

_REGEX = template(
    r"""
import re

_RUN = re.compile(r"(.)\1{0,<<most>>}", <<flags>>)


def _code(match):
    count = match.end() - match.start()
    char = match.group(1)
    escape = "\\" if char in "0123456789" else ""
    sign = escape + char
    return <<code>>


def <<name>>(text):
    if set(text) & set("<<refused>>"):
        raise ValueError(text)
    return _RUN.sub(_code, text)
""",
    _holes,
)

_RECURSION = template(
    """
def <<name>>(text):
    if any(mark in text for mark in "<<refused>>"):
        raise ValueError("digits are not allowed")
    return _encode(text, <<norm>>)


def _encode(text, norm):
    if not text:
        return ""
    count = min(len(norm) - len(norm.lstrip(norm[0])), <<limit>>)
    sign = text[0] if not text[0].isdigit() else "\\\\" + text[0]
    return <<code>> + _encode(text[count:], norm[count:])
""",
    _holes,
)

_BACKWARD = template(
    """
from collections import deque


class Run:
    __slots__ = ("chars",)

    def __init__(self, char):
        self.chars = deque(char)

    def __str__(self):
        count, char = len(self.chars), self.chars[0]
        sign = char
        if char.isdigit():
            <<guard>>
        shown = count if count >= <<least>> else ""
        return "<<fmt>>".format(count=shown, sign=sign)


def <<name>>(text):
    norm = <<norm>>
    done = []
    position = 0
    while position < len(text):
        run = Run(text[position])
        step = position + 1
        while step < len(text) and norm[step] == norm[position]:
            if step - position >= <<limit>>:
                break
            run.chars.append(text[step])
            step += 1
        done.append(run)
        position = step
    return "".join(str(run) for run in done)
""",
    _holes,
)

_BORDERS = template(
    """
def <<name>>(text):
    norm = <<norm>>
    ends = [i for i in range(1, len(norm)) if norm[i] != norm[i - 1]]
    borders = [0, *ends, len(text)]
    cuts = sorted({c for a, z in zip(borders, borders[1:]) for c in range(a, z, <<limit>>)})
    spans = zip(cuts, [*cuts[1:], len(text)])
    signs = {str(d): "\\\\" + str(d) for d in range(10)}
    if "<<refused>>" and not signs.keys().isdisjoint(text):
        raise ValueError("unexpected digit")

    def shown(low, high):
        count, sign = high - low, signs.get(text[low], text[low])
        return <<code>>

    return "".join([shown(*span) for span in spans])
""",
    _holes,
)


_SHORT = "|a|aa|ab|aab|abb|aaa|aaaa|aaaaa|aA|Aab|bAa|aaAAa"
_LATER = "zZzZzZzZzZzZ|7|77|a7|7a|a77b|b11111111111|  |a  b|--ab--|abcabc|aabbcc"


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    texts = [*_SHORT.split("|"), "x" * 9, "x" * 10, "x" * 18, "x" * 19, "yx" + "x" * 11]
    texts += _LATER.split("|")
    for _ in range(24):
        alphabet = rng.choice(("ab", "abC", "aAbB", "xyz ", "k-"))
        text = ""
        for _ in range(rng.randint(2, 5)):
            text += rng.choice(alphabet) * rng.choice((1, 1, 2, 3, 4, 5, 6, 12))
        texts.append(text if rng.random() > 0.12 else text + str(rng.randint(0, 99)))
    return [(text,) for text in texts]


FAMILY = Family(
    name="run-length",
    split="train",
    entry_point=_name,
    facets={
        "place": ("before", "after"),
        "single": ("bare", "counted"),
        "case": ("exact", "fold"),
        "limit": ("none", "nine", "four"),
        "digits": ("error", "escape"),
    },
    instruction=_instruction,
    algorithms=(_LOOP, _GROUPBY, _REGEX, _RECURSION, _BACKWARD, _BORDERS),
    slips=(
        altered(
            _LOOP,
            '    code = ""\n    for char, count in runs:',
            '    code = ""\n    for char, count in runs[:-1]:',
        ),
        altered(_LOOP, "runs[-1][1] < ", "runs[-1][1] <= "),
        altered(_GROUPBY, "groupby(text", "groupby(sorted(text)"),
        altered(_GROUPBY, "while length > ", "while length >= "),
        altered(_REGEX, 're.compile(r"(.)', 're.compile(r"([^ ])'),
        altered(_RECURSION, "return _encode(text, ", "return _encode(text.strip(), "),
        altered(_BACKWARD, "if count >= ", "if count > "),
        altered(_BACKWARD, "norm[step] == norm[position]", "norm[step] == norm[step - 2]"),
        altered(_RECURSION, "if not text:", "if len(text) < 2 and not text.isalpha():"),
    ),
    inputs=_inputs,
)
