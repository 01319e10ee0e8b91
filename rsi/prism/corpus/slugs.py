"""Kata family: turn a title into a slug for an address."""

from __future__ import annotations

import random
from typing import Any

from rsi.prism.corpus.family import Facets, Family, altered, template

_NAMES = {"hyphen": "a hyphen", "underscore": "an underscore", "point": "a point"}
_SIGNS = {"hyphen": "-", "underscore": "_", "point": "."}


def _name(facets: Facets) -> str:
    return "make_slug" if facets["nothing"] == "error" else "slugify"


def _instruction(facets: Facets) -> str:
    case = "Letters become lower case." if facets["case"] == "lower" else "Letters keep their case."
    other = (
        "All other characters (apostrophes, accented letters, ...) are removed without a trace."
        if facets["other"] == "drop"
        else "All other characters (apostrophes, accented letters, ...) are gaps too."
    )
    gaps = (
        "Gaps that follow one another directly in what is left count as one."
        if facets["gaps"] == "one"
        else "Each gap gives one separator, also when several follow one another."
    )
    ends = (
        "Separators at the beginning and the end of the slug are removed."
        if facets["ends"] == "trim"
        else "Gaps at the beginning and the end of the title give separators as all others do."
    )
    nothing = (
        "When the slug would hold no letter and no digit, `ValueError` is raised."
        if facets["nothing"] == "error"
        else 'When the slug would hold no letter and no digit, it is `"untitled"`.'
    )
    return (
        f"Write `{_name(facets)}(title)`. Letters `a` to `z`, `A` to `Z` and digits `0` to `9` go "
        f"into the slug; a space, a hyphen, an underscore, a slash and a point are gaps, and a "
        f"gap is written as the separator, {_NAMES[facets['separator']]}.\n\n"
        f"- {case}\n- {other}\n- {gaps}\n- {ends}\n- {nothing}"
    )


def _holes(facets: Facets) -> dict[str, str]:
    sign = _SIGNS[facets["separator"]]
    lower = facets["case"] == "lower"
    one, trim = facets["gaps"] == "one", facets["ends"] == "trim"
    return {
        "name": _name(facets),
        "sign": sign,
        "lower": ".lower()" if lower else "",
        "other": '""' if facets["other"] == "drop" else f'"{sign}"',
        "gap_only": str(facets["other"] == "drop"),
        "strip": f'.strip("{sign}")' if trim else "",
        "trim": str(trim),
        "one": str(one),
        "plus": "+" if one else "",
        "empty": 'raise ValueError("nothing left of the title")'
        if facets["nothing"] == "error"
        else 'return "untitled"',
        "between": "[^A-Za-z0-9]" if facets["other"] != "drop" else "[-_ /.]",
        "removed": "[^-A-Za-z0-9 _/.]" if facets["other"] == "drop" else "(?!)",
    }


_LOOP = template(
    """
GAPS = " -_/."


def _plain(char):
    return char.isascii() and char.isalnum()


def <<name>>(title):
    slug = ""
    for char in title:
        if _plain(char):
            slug += char<<lower>>
        elif char in GAPS or not <<gap_only>>:
            if not (<<one>> and slug.endswith("<<sign>>")):
                slug += "<<sign>>"
    slug = slug<<strip>>
    if not any(_plain(char) for char in slug):
        <<empty>>
    return slug
""",
    _holes,
)

_REGEX = template(
    """
import re


def <<name>>(title):
    kept = re.sub(r"<<removed>>", "", title)
    slug = re.sub(r"<<between>><<plus>>", "<<sign>>", kept)<<lower>>
    if re.search("[a-zA-Z0-9]", slug) is None:
        <<empty>>
    return slug<<strip>>
""",
    _holes,
)

_TABLE = template(
    """
from string import ascii_letters, digits

_KEPT = {ord(sign): sign<<lower>> for sign in ascii_letters + digits}
_GAPS = dict.fromkeys(map(ord, " -_/."), "<<sign>>")


class _Table(dict):
    def __missing__(self, code):
        return <<other>>


def <<name>>(title):
    slug = title.translate(_Table({**_KEPT, **_GAPS}))
    double = "<<sign>>" * 2
    while <<one>> and double in slug:
        slug = slug.replace(double, "<<sign>>")
    while <<trim>> and slug[:1] == "<<sign>>":
        slug = slug[1:]
    while <<trim>> and slug[-1:] == "<<sign>>":
        slug = slug[:-1]
    if set(slug) <= {"<<sign>>"}:
        <<empty>>
    return slug
""",
    _holes,
)

_WORDS = template(
    """
from itertools import groupby

_ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


def _kind(char):
    if char in _ALPHABET:
        return "word"
    return "none" if <<gap_only>> and char not in " -_/." else "gap"


def <<name>>(title):
    signs = [char for char in title if _kind(char) != "none"]
    parts = []
    for kind, run in groupby(signs, key=_kind):
        text = "".join(run)
        parts.append((kind, text<<lower>> if kind == "word" else text))
    if all(kind == "gap" for kind, _ in parts):
        <<empty>>
    first = next(i for i, (kind, _) in enumerate(parts) if kind == "word")
    last = max(i for i, (kind, _) in enumerate(parts) if kind == "word")
    if <<trim>>:
        parts = parts[first : last + 1]
    shown = []
    for kind, text in parts:
        size = 1 if <<one>> else len(text)
        shown.append(text if kind == "word" else "<<sign>>" * size)
    return "".join(shown)
""",
    _holes,
)

_STACK = template(
    """
class Slug:
    def __init__(self):
        self.signs = []
        self.waiting = 0
        self.real = 0

    def feed(self, code):
        if 48 <= code <= 57 or 65 <= code <= 90 or 97 <= code <= 122:
            self.settle(final=False)
            self.signs.append(chr(code)<<lower>>)
            self.real += 1
        elif code in (32, 45, 95, 47, 46):
            self.waiting += 1
        else:
            self.waiting += len(<<other>>)

    def settle(self, final):
        count = min(self.waiting, 1) if <<one>> else self.waiting
        edge = final or not self.real
        if not (edge and <<trim>>):
            self.signs.extend(["<<sign>>"] * count)
        self.waiting = 0


def <<name>>(title):
    slug = Slug()
    for code in map(ord, title):
        slug.feed(code)
    if slug.real == 0:
        <<empty>>
    slug.settle(final=True)
    return "".join(slug.signs)
""",
    _holes,
)

_PIECES = ("Blue", "moon", "At", "9", "it's", "café", "x", "Re", "10%", "B&B", "end")


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    titles = ["", " ", "--", "!?", "é", "a", "A", "7"]
    titles += [
        "Hello World",
        "hello world",
        "Hello  World",
        "Hello - World",
        "Hello, World",
        "Hello,World",
        "don't stop",
        "Rock & Roll",
        "snake_case_name",
        "1.2.3",
        "a/b/c",
        " padded ",
        "-edge-",
        "__init__",
        "!wow!",
        "Wow!",
        "a--b",
        "a - - b",
        "Ünder Water",
        "naïve",
        "...",
        "' '",
        "x '' y",
        "CamelCase",
    ]
    for _ in range(22):
        words = rng.choices(_PIECES, k=rng.randint(1, 5))
        gaps = [rng.choice((" ", " ", "-", "_", "  ", " - ", "/", "! ", ".")) for _ in words]
        text = "".join(w + g for w, g in zip(words, gaps, strict=True))
        titles.append(text if rng.random() < 0.3 else text.rstrip(" -_/.!"))
    return [(title,) for title in titles]


FAMILY = Family(
    name="slugs",
    split="train",
    entry_point=_name,
    facets={
        "case": ("lower", "keep"),
        "separator": ("hyphen", "underscore", "point"),
        "other": ("drop", "gap"),
        "gaps": ("one", "each"),
        "ends": ("trim", "keep"),
        "nothing": ("error", "untitled"),
    },
    instruction=_instruction,
    algorithms=(_LOOP, _REGEX, _TABLE, _WORDS, _STACK),
    slips=(
        altered(_LOOP, "char.isascii() and char.isalnum()", "char.isalnum()"),
        altered(_LOOP, "char.isascii() and char.isalnum()", "char.isascii() and char.isalpha()"),
        altered(_REGEX, "/.]", "/]"),
        altered(_REGEX, 'if re.search("[a-zA-Z0-9]", slug) is None:', "if not slug:"),
        altered(_TABLE, '" -_/."', '" -_/"'),
        altered(_WORDS, "parts[first : last + 1]", "parts[first:last] or parts"),
        altered(_STACK, "<= 57 or 65", "< 57 or 65"),
        altered(_STACK, "    slug.settle(final=True)\n", ""),
        altered(_TABLE, "    while False and slug[-1:]", "    while slug[-1:]"),
        altered(_WORDS, "len(text)", "len(text.strip())"),
    ),
    inputs=_inputs,
)
