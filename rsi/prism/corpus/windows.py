"""Moving windows: a statistic of every run of neighbouring numbers."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rsi.prism.corpus.blocks import Clauses, Holes, contract, facets_of, program
from rsi.prism.corpus.family import Facets, Family, altered

ENTRIES = {"sum": "moving_sum", "largest": "moving_largest", "spread": "moving_spread"}

CLAUSES: Clauses = {
    "statistic": {
        "sum": "A window gives the sum of its numbers.",
        "largest": "A window gives its largest number.",
        "spread": "A window gives its largest number minus its smallest.",
    },
    "edges": {
        "full": "Only windows of exactly `size` numbers count: one starts at every number that "
        "has enough numbers after it.",
        "growing": "One window ends at every number and reaches back over at most `size` numbers, "
        "so the first windows are shorter.",
        "shrinking": "One window starts at every number and reaches on over at most `size` "
        "numbers, so the last windows are shorter.",
    },
    "oversize": {
        "nothing": "When `size` is greater than the count of numbers, the result is `[]`.",
        "fitted": "When `size` is greater than the count of numbers, it is lowered to that count "
        "(no numbers at all give `[]`).",
    },
    "bad_size": {
        "value-error": "A `size` below 1 raises `ValueError`, whatever the numbers.",
        "none": "A `size` below 1 gives `None`, whatever the numbers.",
        "one": "A `size` below 1 is treated as 1.",
    },
    "order": {
        "oldest-first": "Results stand in the order of the numbers.",
        "newest-first": "Results stand in reverse order: the window furthest to the right first.",
    },
}

# fmt: off
HOLES: Holes = {
    "bad": ("bad_size", {"value-error": 'raise ValueError("size must be at least 1")',
        "none": "return None", "one": "size = 1"}),
    "over": ("oversize", {"nothing": "return []", "fitted": "size = len(values)"}),
    "slices": ("edges", {"full": "values[i : i + size] for i in range(len(values) - size + 1)",
        "growing": "values[max(0, i - size + 1) : i + 1] for i in range(len(values))",
        "shrinking": "values[i : i + size] for i in range(len(values))"}),
    "of_window": ("statistic", {"sum": "sum(window)", "largest": "max(window)",
        "spread": "max(window) - min(window)"}),
    "of_ranked": ("statistic", {"sum": "sum(ranked)", "largest": "ranked[-1]",
        "spread": "ranked[-1] - ranked[0]"}),
    "ordered": ("order", {"oldest-first": "results", "newest-first": "results[::-1]"}),
    "turn": ("order", {"oldest-first": "", "newest-first": "results.reverse()"}),
    "source": ("edges", {"full": "values", "growing": "values", "shrinking": "reversed(values)"}),
    "leaving": ("edges", {"full": "values[place - size]", "growing": "values[place - size]",
        "shrinking": "values[size - place - 1]"}),
    "emit": ("edges", {"full": "if len(recent) == size:", "growing": "if recent:",
        "shrinking": "if recent:"}),
    "backward": ("edges order", {"full oldest-first": "", "growing oldest-first": "",
        "shrinking oldest-first": "results.reverse()", "full newest-first": "results.reverse()",
        "growing newest-first": "results.reverse()", "shrinking newest-first": ""}),
    "bounds": ("edges", {"full": "first, stop = 0, size", "growing": "first, stop = 1 - size, 1",
        "shrinking": "first, stop = 0, size"}),
    "more": ("edges", {"full": "stop <= len(values)", "growing": "stop <= len(values)",
        "shrinking": "first < len(values)"}),
    "start": ("statistic", {"sum": "total = 0", "largest": "high = None",
        "spread": "high = low = None"}),
    "gather": ("statistic", {"sum": "total += values[place]",
        "largest": "if high is None or values[place] > high:\n    high = values[place]",
        "spread": "if high is None or values[place] > high:\n"
        "    high = values[place]\nif low is None or values[place] < low:\n"
        "    low = values[place]"}),
    "gathered": ("statistic", {"sum": "total", "largest": "high", "spread": "high - low"}),
    "padded": ("edges", {"full": "list(values)", "growing": "[None] * (size - 1) + list(values)",
        "shrinking": "list(values) + [None] * (size - 1)"}),
    "head": ("edges", {"full": "values[:size]", "growing": "values[-size:]",
        "shrinking": "values[:size]"}),
    "tail": ("edges", {"full": "values[1:]", "growing": "values[:-1]", "shrinking": "values[1:]"}),
    "least": ("edges", {"full": "size", "growing": "1", "shrinking": "1"}),
    "joined": ("edges order", {"full oldest-first": "[here] + rest",
        "growing oldest-first": "rest + [here]", "shrinking oldest-first": "[here] + rest",
        "full newest-first": "rest + [here]", "growing newest-first": "[here] + rest",
        "shrinking newest-first": "rest + [here]"}),
}
# fmt: on

SLICES = '''
def <<entry>>(values, size):
    """Give the statistic of each window of `size` neighbouring numbers."""
    if size < 1:
        <<bad>>
    if not values:
        return []
    if size > len(values):
        <<over>>
    windows = [<<slices>>]
    results = [<<of_window>> for window in windows]
    return <<ordered>>
'''

DEQUE = """
from collections import deque


def <<entry>>(values, size):
    if size <= 0:
        <<bad>>
    if len(values) < size:
        <<over>>
    recent = deque(maxlen=size)
    results = []
    for value in <<source>>:
        recent.append(value)
        <<emit>>
            window = tuple(recent)
            results.append(<<of_window>>)
    <<backward>>
    return results
"""

RANKED = '''
from bisect import bisect_left, insort


class Window:
    """The numbers of one window in rising order."""

    def __init__(self):
        self.ranked = []

    def add(self, value):
        insort(self.ranked, value)

    def drop(self, value):
        del self.ranked[bisect_left(self.ranked, value)]

    def result(self):
        ranked = self.ranked
        return <<of_ranked>>


def <<entry>>(values, size):
    if size < 1:
        <<bad>>
    count = len(values)
    if count < size:
        <<over>>
    window, results = Window(), []
    for place, value in enumerate(<<source>>):
        window.add(value)
        if place >= size:
            window.drop(<<leaving>>)
        if place + 1 >= <<least>>:
            results.append(window.result())
    <<backward>>
    return results
'''

LOOPS = """
def <<entry>>(values, size):
    if not size >= 1:
        <<bad>>
    if not size <= len(values):
        <<over>>
    results = []
    <<bounds>>
    while values and <<more>>:
        <<start>>
        place = first if first > 0 else 0
        while place < stop and place < len(values):
            <<gather>>
            place += 1
        results.append(<<gathered>>)
        first, stop = first + 1, stop + 1
    <<turn>>
    return results
"""

RECURSE = """
def collect(values, size):
    if not values or len(values) < <<least>>:
        return []
    window = <<head>>
    here = <<of_window>>
    rest = collect(<<tail>>, size)
    return <<joined>>


def <<entry>>(values, size):
    if size < 1:
        <<bad>>
    if size > len(values):
        <<over>>
    return collect(list(values), size)
"""

SHIFTED = """
from itertools import islice, tee


def neighbours(items, size):
    copies = tee(items, size)
    return zip(*(islice(copy, shift, None) for shift, copy in enumerate(copies)))


def statistic(window):
    return <<of_window>>


def <<entry>>(values, size):
    if size < 1:
        <<bad>>
    if size > len(values):
        <<over>>
    padded = <<padded>>
    rows = neighbours(padded, size)
    results = [statistic([item for item in row if item is not None]) for row in rows]
    <<turn>>
    return results
"""


def _entry(facets: Facets) -> str:
    return ENTRIES[facets["statistic"]]


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    some = [3, -1, 4, 1, -5, 9, 2, 6]
    calls: list[tuple[Any, ...]] = [(some, size) for size in (-2, 0, 1, 2, 3, 4, 7, 8, 9, 20)]
    calls += [([], size) for size in (-1, 0, 1, 3)]
    calls += [([5], size) for size in (0, 1, 2)]
    calls += [([-3, -2], size) for size in (0, 1, 2, 3)]
    calls += [([-4, -7, -1], 2), ([2, 2, 2, 2], 3), ([0, 0], 1), ([9, 8, 7, 6, 5], 2)]
    calls += [([1, 2, 3, 4, 5], 3), ([1, 1, 5, 1, 1], 3), ([10, -10, 10, -10], 2)]
    for _ in range(14):
        values = [rng.randint(-9, 9) for _ in range(rng.randint(2, 8))]
        calls.append((values, rng.randint(1, len(values) + 1)))
    return calls


_source = partial(program, holes=HOLES, entry_point=_entry)
_slices, _deque, _ranked = _source(SLICES), _source(DEQUE), _source(RANKED)
_loops, _recurse, _shifted = _source(LOOPS), _source(RECURSE), _source(SHIFTED)

FAMILY = Family(
    name="windows",
    split="train",
    entry_point=_entry,
    facets=facets_of(CLAUSES),
    instruction=contract(
        "Write `<<entry>>(values, size)` in `solution.py`. It takes a list of integers and a "
        "window size and gives a list with one number for each window of neighbouring numbers. "
        "The list has at most 200 numbers.",
        CLAUSES,
        _entry,
    ),
    algorithms=(_slices, _deque, _ranked, _loops, _recurse, _shifted),
    slips=(
        altered(_slices, "if size < 1:", "if size < 0:"),
        altered(_deque, "maxlen=size)", "maxlen=size + 1)"),
        altered(_ranked, "if place >= size:", "if place > size:"),
        altered(_loops, "while place < stop and", "while place < stop - 1 and"),
        altered(_recurse, "if not values or len(values)", "if not values or len(values) - 1"),
        altered(_shifted, "enumerate(copies)", "enumerate(copies, 1)"),
    ),
    inputs=_inputs,
)
