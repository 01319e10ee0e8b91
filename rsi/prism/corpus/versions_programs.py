"""Programs of the kata family versions, alike in behaviour for the same facets."""

from __future__ import annotations

from rsi.prism.corpus.family import Facets, template


def entry_point(facets: Facets) -> str:
    return "compare_versions" if facets["answer"] == "sign" else "relation"


def _holes(facets: Facets) -> dict[str, str]:
    sign = facets["answer"] == "sign"
    tag = facets["tag"]
    return {
        "name": entry_point(facets),
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


LOOP = template(
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

KEYS = template(
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

CLASSES = template(
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

RECURSIVE = template(
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

SCANNER = template(
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
