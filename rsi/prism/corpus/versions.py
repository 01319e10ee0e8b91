"""Kata family: compare version numbers."""

from __future__ import annotations

import random
from typing import Any

from rsi.prism.corpus.family import Facets, Family, altered, template

_TAG = {
    "before": "A version with a tag comes before the same numbers without one; two tags at the "
    "same numbers are compared as texts.",
    "ignore": "A tag has no influence on the comparison.",
    "error": "A version with a tag raises `ValueError`.",
}


def _name(facets: Facets) -> str:
    return "compare_versions" if facets["answer"] == "sign" else "relation"


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
        f"Write `{_name(facets)}(left, right)` for two versions given as texts. A version is one "
        f"or more whole numbers (digits 0 to 9) joined by points, compared number by number from "
        f"the left; after them may stand a tag: a hyphen and one or more lower-case letters or "
        f"digits, as in `2.0-rc1`. Any other text is malformed, and a malformed version on "
        f"either side raises `ValueError`.\n\n- {padding}\n- {_TAG[facets['tag']]}\n- {prefix}\n"
        f"- {zeros}\n- {answer}"
    )


def _holes(facets: Facets) -> dict[str, str]:
    sign = facets["answer"] == "sign"
    tag = facets["tag"]
    return {
        "name": _name(facets),
        "before": "-1" if sign else '"older"',
        "after": "1" if sign else '"newer"',
        "equal": "0" if sign else '"same"',
        "pad": str(facets["length"] == "pad"),
        "prefix": str(facets["prefix"] == "allow"),
        "v": "v?" if facets["prefix"] == "allow" else "",
        "strict": str(facets["zeros"] == "error"),
        "number": "(?:0|[1-9][0-9]*)" if facets["zeros"] == "error" else "[0-9]+",
        "no_tag": str(tag == "error"),
        "tag_pattern": "" if tag == "error" else "(?:-[a-z0-9]+)?",
        "rank": "(not tag, tag)" if tag == "before" else "()",
        "use_tag": str(tag == "before"),
    }


_LOOP = template(
    """
DIGITS = set("0123456789")
LETTERS = DIGITS | set("abcdefghijklmnopqrstuvwxyz")


def _parse(version):
    if <<prefix>> and version.startswith("v"):
        version = version[1:]
    numbers, hyphen, tag = version.partition("-")
    if hyphen and (<<no_tag>> or not tag or not set(tag) <= LETTERS):
        raise ValueError(f"bad tag in {version!r}")
    result = []
    for part in numbers.split("."):
        if not part or not set(part) <= DIGITS:
            raise ValueError(f"bad number in {version!r}")
        if <<strict>> and len(part) > 1 and part[0] == "0":
            raise ValueError(f"leading zero in {version!r}")
        result.append(int(part))
    return result, tag


def <<name>>(left, right):
    one, one_tag = _parse(left)
    two, two_tag = _parse(right)
    if <<pad>>:
        size = max(len(one), len(two))
        one += [0] * (size - len(one))
        two += [0] * (size - len(two))
    if one != two:
        return <<before>> if one < two else <<after>>
    if not <<use_tag>> or one_tag == two_tag:
        return <<equal>>
    if not one_tag:
        return <<after>>
    if not two_tag:
        return <<before>>
    return <<before>> if one_tag < two_tag else <<after>>
""",
    _holes,
)

_KEYS = template(
    """
import re

_FORM = re.compile(r"<<v>>(<<number>>(?:\\.<<number>>)*)<<tag_pattern>>", re.ASCII)


def _key(version):
    found = _FORM.fullmatch(version)
    if found is None:
        raise ValueError(version)
    numbers = [int(n) for n in found.group(1).split(".")]
    while <<pad>> and numbers and numbers[-1] == 0:
        numbers.pop()
    tag = version[found.end(1) + 1 :]
    return numbers, <<rank>>


def <<name>>(left, right):
    a, b = _key(left), _key(right)
    return (<<equal>>, <<after>>, <<before>>)[(a > b) - (a < b)]
""",
    _holes,
)

_CLASSES = template(
    """
from functools import total_ordering
from itertools import zip_longest


@total_ordering
class Version:
    def __init__(self, text):
        body = text.removeprefix("v") if <<prefix>> else text
        pieces = body.split("-")
        self.tag = pieces[1] if len(pieces) == 2 else None
        self.parts = pieces[0].split(".")
        if len(pieces) > 2 or not self._sound():
            raise ValueError(f"{text} is not a version")

    def _sound(self):
        tag_fine = self.tag is None or (
            not <<no_tag>>
            and self.tag.isascii()
            and self.tag.isalnum()
            and self.tag == self.tag.lower()
        )
        fine = all(p.isascii() and p.isdigit() for p in self.parts)
        tidy = all(p == str(int(p)) for p in self.parts) if fine else False
        return fine and tag_fine and (tidy or not <<strict>>)

    def _pairs(self, other):
        rest = "0" if <<pad>> else "-1"
        for mine, its in zip_longest(self.parts, other.parts, fillvalue=rest):
            yield int(mine), int(its)
        if <<use_tag>>:
            yield self.tag is None, other.tag is None
            yield self.tag or "", other.tag or ""

    def __eq__(self, other):
        return all(mine == its for mine, its in self._pairs(other))

    def __lt__(self, other):
        different = (mine < its for mine, its in self._pairs(other) if mine != its)
        return next(different, False)


def <<name>>(left, right):
    left, right = Version(left), Version(right)
    if left == right:
        return <<equal>>
    return <<before>> if left < right else <<after>>
""",
    _holes,
)

_RECURSIVE = template(
    """
def <<name>>(left, right):
    heads = []
    for text in (left, right):
        if text[:1] == "v" and <<prefix>>:
            text = text[1:]
        stop = text.find("-")
        stop = len(text) if stop < 0 else stop
        _check_tag(text[stop:])
        heads.append((_numbers(text[:stop]), text[stop + 1 :]))
    (a, a_tag), (b, b_tag) = heads
    outcome = _weigh(a, b)
    if outcome == 0 and <<use_tag>> and a_tag != b_tag:
        outcome = -1 if b_tag == "" or "" != a_tag < b_tag else 1
    return {-1: <<before>>, 0: <<equal>>, 1: <<after>>}[outcome]


def _check_tag(tail):
    if tail and (len(tail) == 1 or <<no_tag>>):
        raise ValueError(tail)
    for sign in tail[1:]:
        if not ("a" <= sign <= "z" or "0" <= sign <= "9"):
            raise ValueError(sign)


def _numbers(text):
    first, point, rest = text.partition(".")
    if first.strip("0123456789") or first == "":
        raise ValueError(text)
    if first.startswith("0") and first != "0" and <<strict>>:
        raise ValueError(first)
    return (int(first), *_numbers(rest)) if point else (int(first),)


def _weigh(a, b):
    if not a and not b:
        return 0
    if not a or not b:
        return (_weigh(a or (0,), b or (0,))) if <<pad>> else (-1 if not a else 1)
    if a[0] == b[0]:
        return _weigh(a[1:], b[1:])
    return 1 if a[0] > b[0] else -1
""",
    _holes,
)

_SCANNER = template(
    """
def _scan(text):
    numbers, tag, current, state = [], "", "", "start"
    for sign in text + "\\0":
        digit = sign in "0123456789"
        if state == "tag":
            if sign == "\\0" and tag:
                break
            if not digit and sign not in "abcdefghijklmnopqrstuvwxyz":
                raise ValueError(text)
            tag += sign
        elif digit:
            if <<strict>> and current == "0":
                raise ValueError(text)
            current, state = current + sign, "number"
        elif state == "start" and sign == "v" and <<prefix>>:
            state = "open"
        elif state == "number" and sign in ".-\\0":
            numbers.append(int(current))
            current, state = "", {".": "open", "-": "tag", "\\0": "end"}[sign]
        else:
            raise ValueError(text)
    if tag and <<no_tag>>:
        raise ValueError(tag)
    return numbers, tag


def <<name>>(left, right):
    (mine, my_tag), (its, its_tag) = _scan(left), _scan(right)
    index = 0
    while index < len(mine) or index < len(its):
        a = mine[index] if index < len(mine) else (0 if <<pad>> else -1)
        b = its[index] if index < len(its) else (0 if <<pad>> else -1)
        if a > b:
            return <<after>>
        if a < b:
            return <<before>>
        index += 1
    order = [my_tag or "~", its_tag or "~"]
    if not <<use_tag>> or order[0] == order[1]:
        return <<equal>>
    return <<before>> if order == sorted(order) else <<after>>
""",
    _holes,
)


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = [
        ("1.2", "1.2"),
        ("1.2", "1.3"),
        ("1.10", "1.9"),
        ("2", "10"),
        ("1.2", "1.2.0"),
        ("1.2.0.0", "1.2"),
        ("1", "1.0.1"),
        ("1.2.1", "1.2"),
        ("0", "0.0"),
        ("1.0-rc1", "1.0"),
        ("1.0", "1.0-rc1"),
        ("1.0-rc1", "1.0-rc2"),
        ("1.0-rc10", "1.0-rc9"),
        ("1.0-beta", "1.0-alpha"),
        ("1.1-a", "1.0"),
        ("1.0-a", "1.1-b"),
        ("1.0-rc1", "1.0.0"),
        ("1.0-a", "1.0-a"),
        ("v1.2", "1.2"),
        ("v1.3", "v1.2"),
        ("vv1", "1"),
        ("V1", "1"),
        ("1.02", "1.2"),
        ("1.2", "1.03"),
        ("01", "1"),
        ("1.00", "1.0"),
        ("1.", "1"),
        ("1..2", "1"),
        ("", "1"),
        ("1", ""),
        ("1.a", "1"),
        ("1.0-", "1.0"),
        ("1.0-RC", "1.0"),
        ("1 .0", "1.0"),
        ("-a", "1"),
        ("1", "x"),
    ]
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
    entry_point=_name,
    facets={
        "length": ("pad", "shorter"),
        "tag": ("before", "ignore", "error"),
        "prefix": ("allow", "error"),
        "zeros": ("allow", "error"),
        "answer": ("sign", "words"),
    },
    instruction=_instruction,
    algorithms=(_LOOP, _KEYS, _CLASSES, _RECURSIVE, _SCANNER),
    slips=(
        altered(_LOOP, "result.append(int(part))", "result.append(part)"),
        altered(_LOOP, "if not one_tag:", "if one_tag:"),
        altered(_KEYS, ".fullmatch(version)", ".match(version)"),
        altered(_KEYS, "[(a > b) - (a < b)]", "[(a >= b) - (a <= b and a != b)]"),
        altered(
            _CLASSES,
            "zip_longest(self.parts, other.parts, fillvalue=rest)",
            "zip(self.parts, other.parts)",
        ),
        altered(
            _RECURSIVE,
            "return (int(first), *_numbers(rest)) if point",
            "return (int(first), *_numbers(rest)) if rest",
        ),
        altered(
            _SCANNER,
            "while index < len(mine) or index < len(its):",
            "while index < min(3, max(len(mine), len(its))):",
        ),
        altered(
            _SCANNER, "while index < len(mine) or index < len(its):", "while index < len(mine):"
        ),
        altered(
            _RECURSIVE,
            "(left, right):\n        if text",
            "(left, right):\n        text = text.lower().strip()\n        if text",
        ),
    ),
    inputs=_inputs,
)
