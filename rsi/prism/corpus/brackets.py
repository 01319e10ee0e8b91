"""Bracket nesting: measure how brackets nest in a text, or notice that they do not match."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rsi.prism.corpus.blocks import Clauses, Holes, contract, facets_of, program
from rsi.prism.corpus.family import Facets, Family, altered

ENTRIES = {"depth": "nesting_depth", "pairs": "count_pairs", "groups": "count_groups"}

CLAUSES: Clauses = {
    "result": {
        "depth": "The result is the greatest number of brackets that are open at the same time.",
        "pairs": "The result is the number of matched pairs, at every level.",
        "groups": "The result is the number of outermost pairs: those inside no other pair.",
    },
    "kinds": {
        "three": "Brackets are `()`, `[]` and `{}`; every other character, `<` and `>` too, is "
        "plain text.",
        "four": "Brackets are `()`, `[]`, `{}` and `<>`; every other character is plain text.",
    },
    "quotes": {
        "hide": 'Brackets between two double quotes (`"`) are plain text; a quote that is never '
        "closed hides the rest of the text.",
        "plain": 'A double quote (`"`) is plain text like any other.',
    },
    "escape": {
        "backslash": "A backslash makes the next character plain text, wherever it stands.",
        "none": "A backslash is plain text and has no effect on its neighbour.",
    },
    "failure": {
        "value-error": "When a bracket is left open, closes nothing or closes the wrong kind, "
        "raise `ValueError`.",
        "minus-one": "When a bracket is left open, closes nothing or closes the wrong kind, "
        "return `-1`.",
        "none": "When a bracket is left open, closes nothing or closes the wrong kind, "
        "return `None`.",
    },
    "bare": {
        "zero": "A text without any bracket gives `0`.",
        "empty-string": 'A text without any bracket gives the empty string `""`.',
    },
}

# fmt: off
HOLES: Holes = {
    "mates": ("kinds", {"three": '{"(": ")", "[": "]", "{": "}"}',
        "four": '{"(": ")", "[": "]", "{": "}", "<": ">"}'}),
    "opening": ("kinds", {"three": '"([{"', "four": '"([{<"'}),
    "closing": ("kinds", {"three": '")]}"', "four": '")]}>"'}),
    "class": ("kinds", {"three": r"[^()\[\]{}]", "four": r"[^()\[\]{}<>]"}),
    "adjacent": ("kinds", {"three": r"\(\)|\[\]|\{\}", "four": r"\(\)|\[\]|\{\}|<>"}),
    "fail": ("failure", {"value-error": 'raise ValueError("brackets do not match")',
        "minus-one": "return -1", "none": "return None"}),
    "bare": ("bare", {"zero": "0", "empty-string": '""'}),
    "skip_escape": ("escape", {"backslash": 'if char == "\\\\":\n    position += 2\n    continue',
        "none": ""}),
    "skip_quoted": ("quotes", {"hide": "if char == '\"':\n    quoted = not quoted\nif quoted:\n"
        "    position += 1\n    continue", "plain": ""}),
    "drop_escaped": ("escape", {"backslash": r'text = re.sub(r"\\.?", "", text, flags=re.DOTALL)',
        "none": ""}),
    "drop_quoted": ("quotes", {"hide": "text = re.sub(r'\"[^\"]*(\"|\\Z)', \"\", text)",
        "plain": ""}),
    "every_other": ("quotes", {"hide": "text = \"\".join(text.split('\"')[::2])", "plain": ""}),
    "on_open": ("result", {"depth": "best = max(best, len(stack))", "pairs": "", "groups": ""}),
    "on_close": ("result", {"depth": "", "pairs": "best += 1",
        "groups": "if not stack:\n    best += 1"}),
    "reduced": ("result", {"depth": "return rounds", "pairs": "return len(brackets) // 2",
        "groups": "level = groups = 0\nfor char in brackets:\n"
        "    level += 1 if char in <<opening>> else -1\n    groups += level == 0\n" "return groups"
    }),
    "absorb": ("result", {"depth": "tally = max(tally, inner + 1)", "pairs": "tally += inner + 1",
        "groups": "tally += 1"}),
    "opened": ("result", {"depth": "max(best, len(waiting))", "pairs": "best", "groups": "best"}),
    "closed": ("result", {"depth": "best", "pairs": "best + 1",
        "groups": "best + (len(waiting) == 1)"}),
    "summary": ("result", {"depth": "1 + max(level for level, _ in spans)", "pairs": "len(spans)",
        "groups": "sum(1 for level, _ in spans if level == 0)"}),
}
# fmt: on

STACK = r'''
MATES = <<mates>>


def <<entry>>(text):
    """Walk over the text once and keep the open brackets on a stack."""
    stack = []
    best = 0
    seen = False
    quoted = False
    position = 0
    while position < len(text):
        char = text[position]
        <<skip_escape>>
        <<skip_quoted>>
        if char in MATES:
            seen = True
            stack.append(char)
            <<on_open>>
        elif char in MATES.values():
            if not stack or MATES[stack.pop()] != char:
                <<fail>>
            <<on_close>>
        position += 1
    if stack:
        <<fail>>
    return best if seen else <<bare>>
'''

REDUCE = r"""
import re


def <<entry>>(text):
    <<drop_escaped>>
    <<drop_quoted>>
    brackets = re.sub(r"<<class>>", "", text)
    if brackets == "":
        return <<bare>>
    rounds, rest = 0, brackets
    while rest:
        shorter = re.sub(r"<<adjacent>>", "", rest)
        if shorter == rest:
            <<fail>>
        rounds, rest = rounds + 1, shorter
    <<reduced>>
"""

DESCENT = r'''
import re

MATES = <<mates>>


class Mismatch(Exception):
    pass


def walk(tokens, index, closer):
    """Read up to `closer`; give the index behind it and what was found on the way."""
    tally = 0
    while index < len(tokens):
        token = tokens[index]
        if token in MATES:
            index, inner = walk(tokens, index + 1, MATES[token])
            <<absorb>>
        elif token == closer:
            return index + 1, tally
        else:
            raise Mismatch
    if closer is not None:
        raise Mismatch
    return index, tally


def <<entry>>(text):
    <<drop_escaped>>
    <<every_other>>
    tokens = [char for char in text if char in <<opening>> or char in <<closing>>]
    try:
        _, found = walk(tokens, 0, None)
    except Mismatch:
        found = None
    if found is None:
        <<fail>>
    return found if tokens else <<bare>>
'''

FOLD = r"""
import re
from functools import reduce

TURN = str.maketrans(<<opening>>, <<closing>>)


def step(state, char):
    waiting, best = state
    if waiting is None:
        return state
    if char in <<opening>>:
        waiting = char.translate(TURN) + waiting
        return waiting, <<opened>>
    if waiting[:1] != char:
        return None, best
    return waiting[1:], <<closed>>


def <<entry>>(text):
    <<drop_escaped>>
    <<drop_quoted>>
    shape = list(filter((<<opening>> + <<closing>>).__contains__, text))
    waiting, best = reduce(step, shape, ("", 0))
    if waiting != "":
        <<fail>>
    return best if shape else <<bare>>
"""

SPANS = r"""
import re


class Brackets:
    kinds = tuple(zip(<<opening>>, <<closing>>))

    def __init__(self, text):
        self.spans = []
        self.opened = []
        self.broken = False
        for place, char in enumerate(text):
            for opener, closer in self.kinds:
                if char == opener:
                    self.opened.append((place, closer))
                elif char == closer:
                    self.close(place, char)

    def close(self, place, char):
        if self.opened and self.opened[-1][1] == char:
            start, _ = self.opened.pop()
            self.spans.append((len(self.opened), (start, place)))
        else:
            self.broken = True


def <<entry>>(text):
    <<drop_escaped>>
    <<every_other>>
    found = Brackets(text)
    spans = found.spans
    if found.broken or found.opened:
        <<fail>>
    if not spans:
        return <<bare>>
    return <<summary>>
"""


def _entry(facets: Facets) -> str:
    return ENTRIES[facets["result"]]


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    fixed = ["", "abc", "()", "(", ")", "(]", "([)]", "[(])", "()[]{}", "([{}])", "(()", "())"]
    fixed += ["<>", "<(>)", "a < b", "(a > b)", "((())())()", "(a)(b(c))", "x{y[z](w)}", "]["]
    fixed += ['"("', '("(")', '"()"', '(")")', '()"', '()"(', '"a" ("b") "[c]"', "\\(", "(\\))"]
    fixed += ["(\\()", "()\\", "\\\\()", '"\\"("', '(\\")', '[\\"()\\"]', "[](", "{()}[", "([]"]
    fixed += [
        "<<>>",
        "([<>])<>",
        "()()()",
        "((a))b((c))",
        "(x",
        "[1](2){3}",
        "([a]{b})",
        "no (one)",
    ]
    drawn = ["".join(rng.choices('()[]{}<>"\\a', k=rng.randint(2, 6))) for _ in range(10)]
    return [(text,) for text in [*fixed, *drawn]]


_source = partial(program, holes=HOLES, entry_point=_entry)
_stack, _reduce, _descent = _source(STACK), _source(REDUCE), _source(DESCENT)
_fold, _spans = _source(FOLD), _source(SPANS)

FAMILY = Family(
    name="brackets",
    split="train",
    entry_point=_entry,
    facets=facets_of(CLAUSES),
    instruction=contract(
        "Write `<<entry>>(text)` in `solution.py`. It looks at the brackets of a string of at "
        "most 200 characters. They match when every bracket is closed by its own kind in the "
        "right order.",
        CLAUSES,
        _entry,
    ),
    algorithms=(_stack, _reduce, _descent, _fold, _spans),
    slips=(
        altered(_stack, "    if stack:\n", "    if len(stack) > 1:\n"),
        altered(_stack, "while position < len(text):", "while position < len(text) - 1:"),
        altered(_descent, "elif token == closer:", "elif closer and token not in MATES:"),
        altered(_fold, 'if waiting != "":', "if waiting is None:"),
        altered(_spans, "        else:\n            self.broken = True\n", ""),
        altered(_spans, "if found.broken or found.opened:", "if found.broken and found.opened:"),
        altered(_stack, "if not stack or MATES[", "if MATES["),
    ),
    inputs=_inputs,
)
