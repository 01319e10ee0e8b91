"""Kata family: break a text into lines of limited width."""

from __future__ import annotations

import random
from typing import Any

from rsi.prism.corpus.family import Facets, Family, altered
from rsi.prism.corpus.wrapping_programs import (
    COUNTER,
    GREEDY,
    RECURSIVE,
    SEARCH,
    STREAM,
    entry_point,
)

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
        f"Write `{entry_point(facets)}(text, width)`. It spreads the words of a text over lines "
        f"of at "
        f"most `width` characters. Words are separated by white space of any length; on a line "
        f"they stand one space apart, and each line takes as many words as fit.\n\n"
        f"- {breaks}\n- {_LONG[facets['long']]}\n- {_ALIGN[facets['align']]}\n- {joined}\n"
        f"- A width below 1 raises `ValueError`, whatever the text."
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
    entry_point=entry_point,
    facets={
        "newline": ("space", "hard"),
        "long": ("cut", "keep", "error"),
        "align": ("left", "right", "center"),
        "result": ("lines", "text"),
    },
    instruction=_instruction,
    algorithms=(GREEDY, COUNTER, SEARCH, RECURSIVE, STREAM),
    slips=(
        altered(GREEDY, "len(line) + 1 + len(piece) <= width", "len(line) + len(piece) <= width"),
        altered(
            GREEDY,
            "        lines.append(line)\n    lines",
            "        lines += [line] if line else []\n    lines",
        ),
        altered(COUNTER, "used + len(word) >= width", "used + len(word) >= width - 1"),
        altered(SEARCH, "width + 1)", "width)"),
        altered(RECURSIVE, "length += 1 + len(words[taken])", "length += len(words[taken])"),
        altered(STREAM, "if width < 1:", "if width < 0:"),
        altered(STREAM, "if word:", "if word.isalpha():"),
        altered(RECURSIVE, "1 + len(words[taken]) <= width:", "1 + len(words[taken]) < width:"),
    ),
    inputs=_inputs,
)
