"""Kata family: break a text into lines of limited width."""

from __future__ import annotations

import random
from typing import Any

from rsi.prism.corpus.family import Facets, Family, altered, template

_LONG = {
    "cut": "A word longer than the width starts on a line of its own and is cut into pieces of "
    "exactly the width; the last piece is followed by further words as any word is.",
    "keep": "A word longer than the width is left whole, alone on a line that is too long.",
    "error": "A word longer than the width raises `ValueError`.",
}
_ALIGN = {
    "left": "Lines are not padded.",
    "right": "Each line shorter than the width is padded with spaces on its left to the width.",
    "center": "Each line shorter than the width is padded with spaces to the width on both "
    "sides; when the number of spaces is odd, the extra one stands on the right.",
}


def _name(facets: Facets) -> str:
    return {"left": "wrap", "right": "flush_right", "center": "centered"}[facets["align"]]


def _instruction(facets: Facets) -> str:
    breaks = (
        "A newline is white space like any other."
        if facets["newline"] == "space"
        else "A newline in the text always ends a line; an empty piece between two newlines (or "
        "before the first, or after the last) gives an empty line, padded like any other."
    )
    joined = {
        "lines": "The result is a list of lines; a text without any word gives an empty list.",
        "text": "The result is one text, the lines joined by newlines; a text without any word "
        "gives the empty text.",
    }[facets["result"]]
    return (
        f"Write `{_name(facets)}(text, width)`. It spreads the words of a text over lines of at "
        f"most `width` characters. Words are separated by white space of any length; on a line "
        f"they stand one space apart, and each line takes as many words as fit.\n\n"
        f"- {breaks}\n- {_LONG[facets['long']]}\n- {_ALIGN[facets['align']]}\n- {joined}\n"
        f"- A width below 1 raises `ValueError`, whatever the text."
    )


def _holes(facets: Facets) -> dict[str, str]:
    hard = facets["newline"] == "hard"
    mark = {"left": "", "right": ">", "center": "^"}[facets["align"]]
    return {
        "name": _name(facets),
        "paragraphs": 'text.split("\\n")' if hard else "[text]",
        "hard": str(hard),
        "pad": {
            "left": "line",
            "right": "line.rjust(width)",
            "center": '" " * ((width - len(line)) // 2) + line + '
            '" " * ((width - len(line) + 1) // 2)',
        }[facets["align"]],
        "shaped": f'f"{{row:{mark}{{width}}}}"' if mark else "row",
        "too_long": {
            "cut": "pieces = [word[i : i + width] for i in range(0, len(word), width)]",
            "keep": "pieces = [word]",
            "error": 'raise ValueError(f"{word!r} is wider than {width}")',
        }[facets["long"]],
        "cut_now": {
            "cut": "room = width",
            "keep": "room = len(word)",
            "error": 'raise ValueError("word too wide")',
        }[facets["long"]],
        "refuse": str(facets["long"] == "error"),
        "result": "lines" if facets["result"] == "lines" else '"\\n".join(lines)',
    }


_GREEDY = template(
    """
def <<name>>(text, width):
    if width < 1:
        raise ValueError("width must be positive")
    if not text.strip():
        return <<nothing>>
    lines = []
    for paragraph in <<paragraphs>>:
        line = ""
        started = False
        for word in paragraph.split():
            pieces = [word]
            if len(word) > width:
                <<too_long>>
            for number, piece in enumerate(pieces):
                if not started:
                    line, started = piece, True
                elif number == 0 and len(word) <= width and len(line) + 1 + len(piece) <= width:
                    line += " " + piece
                else:
                    lines.append(line)
                    line = piece
        lines.append(line)
    lines = [<<pad>> for line in lines]
    return <<result>>
""",
    lambda facets: {**_holes(facets), "nothing": _nothing(facets)},
)


def _nothing(facets: Facets) -> str:
    return "[]" if facets["result"] == "lines" else '""'


_COUNTER = template(
    """
def _rows(words, width):
    row, used = [], 0
    for word in words:
        whole = len(word) <= width
        if row and (not whole or used + len(word) >= width):
            yield " ".join(row)
            row, used = [], 0
        while len(word) > width:
            <<cut_now>>
            head, word = word[:room], word[room:]
            if not word:
                word = head
                break
            yield head
        used += len(word) + bool(row)
        row.append(word)
    yield " ".join(row)


def <<name>>(text, width):
    if width <= 0:
        raise ValueError(width)
    lines = []
    if text.split():
        for part in <<paragraphs>>:
            for row in _rows(part.split(), width):
                lines.append(<<shaped>>)
    return <<result>>
""",
    _holes,
)

_SEARCH = template(
    """
import re


def <<name>>(text, width):
    if not width >= 1:
        raise ValueError("no room")
    words = re.findall(r"\\S+", text)
    if <<refuse>> and any(len(word) > width for word in words):
        raise ValueError("a word does not fit")
    lines = []
    blocks = re.split(r"\\n", text) if <<hard>> else [" ".join(words)]
    for block in blocks if words else ():
        rest = " ".join(re.findall(r"\\S+", block))
        first = True
        while rest or first:
            first = False
            line, rest = _split(rest, width)
            lines.append(<<pad>>)
    return <<result>>


def _split(rest, width):
    if len(rest) <= width:
        return rest, ""
    gap = rest.rfind(" ", 0, width + 1)
    if gap < 0:
        end = rest.find(" ")
        end = len(rest) if end < 0 else end
        stop = min(end, width) if <<cutting>> else end
        return rest[:stop], rest[stop:].lstrip(" ")
    start = rest.rfind(" ", 0, gap + 1) + 1
    return rest[:gap], rest[start:]
""",
    lambda facets: {**_holes(facets), "cutting": str(facets["long"] == "cut")},
)

_RECURSIVE = template(
    """
def _lay(words, width):
    if not words:
        return []
    first, *others = words
    if len(first) > width:
        <<first_long>>
    taken, length = 1, len(first)
    while taken < len(words) and length + 1 + len(words[taken]) <= width:
        length += 1 + len(words[taken])
        taken += 1
    return [" ".join(words[:taken])] + _lay(words[taken:], width)


def <<name>>(text, width):
    if width < 1:
        raise ValueError("width")
    everything = [part.split() for part in <<paragraphs>>]
    lines = []
    if any(everything):
        for words in everything:
            lines.extend(_lay(words, width) or [""])
    lines = list(map(lambda line: <<pad>>, lines))
    return <<result>>
""",
    lambda facets: {
        **_holes(facets),
        "first_long": {
            "cut": "return [first[:width]] + _lay([first[width:], *others], width)",
            "keep": "return [first] + _lay(others, width)",
            "error": "raise ValueError(first)",
        }[facets["long"]],
    },
)

_STREAM = template(
    """
class _Page:
    def __init__(self, width):
        self.width = width
        self.done = []
        self.line = None

    def flush(self):
        line = "" if self.line is None else self.line
        self.done.append(line)
        self.line = None

    def put(self, word):
        too_long = len(word) > self.width
        if self.line is not None and (too_long or len(f"{self.line} {word}") > self.width):
            self.flush()
        if too_long:
            width = self.width
            <<too_long>>
            self.done.extend(pieces[:-1])
            word = pieces[-1]
        self.line = word if self.line is None else f"{self.line} {word}"


def <<name>>(text, width):
    if width < 1:
        raise ValueError("too narrow")
    page, seen, word = _Page(width), False, ""
    for sign in text + " ":
        if not sign.isspace():
            word += sign
            continue
        if word:
            page.put(word)
            seen, word = True, ""
        if sign == "\\n" and <<hard>>:
            page.flush()
    page.flush()
    lines = [<<pad>> for line in page.done] if seen else []
    return <<result>>
""",
    _holes,
)

_TEXT = "a to the and moon river lantern of harbour extraordinary we go x2 can't blue"


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = [
        ("", 5),
        ("   ", 5),
        ("\n", 5),
        ("a", 1),
        ("a b", 1),
        ("ab", 1),
        ("one two", 7),
        ("one two", 6),
        ("one two", 3),
        ("one two three", 8),
        ("one  two", 8),
        (" one two ", 9),
        ("one\ntwo", 9),
        ("one\n\ntwo", 9),
        ("one\n", 4),
        ("\none two", 5),
        ("one \n two three", 6),
        ("abcdefgh", 4),
        ("abcdefghi", 4),
        ("ab abcdefghi cd", 4),
        ("abcdef gh", 5),
        ("tab\there", 12),
        ("", 0),
        ("word", 0),
        ("word", -2),
        ("x yy zzz", 4),
        ("lantern", 7),
        ("lantern moon", 7),
        ("a b c d e f", 3),
    ]
    for _ in range(26):
        words = rng.choices(_TEXT.split(), k=rng.randint(2, 9))
        gaps = [rng.choice((" ", " ", " ", "  ", "\n", " \n")) for _ in words]
        text = "".join(w + g for w, g in zip(words, gaps, strict=True))
        calls.append((text.rstrip(" ") if rng.random() < 0.5 else text.strip(), rng.randint(6, 16)))
    return calls


FAMILY = Family(
    name="wrapping",
    split="selection",
    entry_point=_name,
    facets={
        "newline": ("space", "hard"),
        "long": ("cut", "keep", "error"),
        "align": ("left", "right", "center"),
        "result": ("lines", "text"),
    },
    instruction=_instruction,
    algorithms=(_GREEDY, _COUNTER, _SEARCH, _RECURSIVE, _STREAM),
    slips=(
        altered(_GREEDY, "len(line) + 1 + len(piece) <= width", "len(line) + len(piece) <= width"),
        altered(
            _GREEDY,
            "        lines.append(line)\n    lines",
            "        lines += [line] if line else []\n    lines",
        ),
        altered(_COUNTER, "used + len(word) >= width", "used + len(word) >= width - 1"),
        altered(_SEARCH, "width + 1)", "width)"),
        altered(_RECURSIVE, "length += 1 + len(words[taken])", "length += len(words[taken])"),
        altered(_STREAM, "if width < 1:", "if width < 0:"),
        altered(_STREAM, "if word:", "if word.isalpha():"),
        altered(_RECURSIVE, "1 + len(words[taken]) <= width:", "1 + len(words[taken]) < width:"),
    ),
    inputs=_inputs,
)
