"""Histograms: sort whole numbers into buckets of equal width."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rsi.prism.corpus.blocks import Clauses, Holes, contract, facets_of, program
from rsi.prism.corpus.family import Facets, Family, altered

CLAUSES: Clauses = {
    "side": {
        "lower": "A bucket holds its lower edge but not its upper edge.",
        "upper": "A bucket holds its upper edge but not its lower edge.",
    },
    "outer": {
        "inside": "The one outer edge of the whole range that this leaves out belongs to the "
        "bucket next to it all the same.",
        "outside": "The one outer edge of the whole range that this leaves out is outside.",
    },
    "outside": {
        "dropped": "Numbers outside the range are not counted.",
        "value-error": "A number outside the range raises `ValueError`.",
        "extra": "The result has two more entries for numbers outside: the first for those below "
        "the range, the last for those above it.",
    },
    "result": {
        "counts": "Each entry is how many numbers it holds.",
        "cumulative": "Each entry is how many numbers it and all entries before it hold.",
        "percent": "Each entry is its share of all counted numbers in percent, cut down to a whole "
        "number (all `0` when nothing was counted).",
    },
    "bad": {
        "value-error": "A `width` or `count` below 1 raises `ValueError`.",
        "none": "A `width` or `count` below 1 gives `None`.",
        "empty": "A `width` or `count` below 1 gives `[]`.",
    },
}

_OUTSIDE = 'raise ValueError(f"{value} is outside the range")'

# fmt: off
HOLES: Holes = {
    "bad": ("bad", {"value-error": 'raise ValueError("width and count must be at least 1")',
        "none": "return None", "empty": "return []"}),
    "index": ("side", {"lower": "(value - low) // width", "upper": "(value - low - 1) // width"}),
    "outer_index": ("side outer", {
        "lower inside": "if value == low + width * count:\n    index = count - 1",
        "upper inside": "if value == low:\n    index = 0", "lower outside": "", "upper outside": ""
    }),
    "place": (
        "outside",
        {
            "dropped": "if 0 <= index < count:\n    buckets[index] += 1",
            "value-error": "if not 0 <= index < count:\n    " + _OUTSIDE + "\nbuckets[index] += 1",
            "extra": "buckets[max(0, min(index + 1, count + 1))] += 1",
        },
    ),
    "slots": ("outside", {"dropped": "count", "value-error": "count", "extra": "count + 2"}),
    "finished": ("result", {"counts": "return buckets",
        "cumulative": "for i in range(1, len(buckets)):\n"
        "    buckets[i] += buckets[i - 1]\nreturn buckets",
        "percent": "total = sum(buckets) or 1\nreturn [100 * n // total for n in buckets]"}),
    "bisect": ("side", {"lower": "bisect_right", "upper": "bisect_left"}),
    "nudged": ("side outer", {"lower inside": "value - (value == edges[-1])",
        "upper inside": "value + (value == edges[0])", "lower outside": "value",
        "upper outside": "value"}),
    "limit": ("outside", {"dropped": "spots = [spot for spot in spots if 1 <= spot <= count]",
        "value-error": "if any(spot < 1 or spot > count for spot in spots):\n"
        '    raise ValueError("a number is outside the range")', "extra": ""}),
    "shown": ("outside", {"dropped": "range(1, count + 1)", "value-error": "range(1, count + 1)",
        "extra": "range(count + 2)"}),
    "tallied": ("result", {"counts": "[tally[spot] for spot in <<shown>>]",
        "cumulative": "list(accumulate(tally[spot] for spot in <<shown>>))",
        "percent": "[tally[spot] * 100 // max(1, len(spots)) for spot in <<shown>>]"}),
    "first_edge": ("side outer", {"lower inside": "value >= start",
        "upper inside": "value > start or value == start == low", "lower outside": "value >= start",
        "upper outside": "value > start"}),
    "last_edge": ("side outer", {"lower inside": "value < stop or value == stop == high",
        "upper inside": "value <= stop", "lower outside": "value < stop",
        "upper outside": "value <= stop"}),
    "rest": ("outside", {"dropped": "",
        "value-error": 'if left:\n    raise ValueError(f"outside the range: {left}")',
        "extra": "below = [value for value in left if value <= low]\n"
        "parts = [below, *parts, [value for value in left if value > low]]"}),
    "sizes": ("result", {"counts": "return [len(part) for part in parts]",
        "cumulative": "sizes = [len(part) for part in parts]\n"
        "return [sum(sizes[: i + 1]) for i in range(len(sizes))]",
        "percent": "everything = sum(len(part) for part in parts)\n"
        "if not everything:\n    return [0 for _ in parts]\n"
        "return [len(part) * 100 // everything for part in parts]"}),
    "below": ("side outer", {"lower inside": "(lambda v, e: v < e or v == e == high)",
        "upper inside": "(lambda v, e: v <= e and not v == e == low)",
        "lower outside": "operator.lt", "upper outside": "operator.le"}),
    "checked": ("outside", {"dropped": "totals = [n - heads[0] for n in heads[1:]]",
        "value-error": "if heads[0] > 0 or heads[-1] < len(values):\n"
        '    raise ValueError("values outside the range")\ntotals = heads[1:]',
        "extra": "totals = [*heads, len(values)]"}),
    "from_totals": ("result", {"counts": "return [b - a for a, b in zip([0, *totals], totals)]",
        "cumulative": "return totals",
        "percent": "if totals[-1] == 0:\n    return [0] * len(totals)\n"
        "return [(b - a) * 100 // totals[-1] for a, b in zip([0, *totals], totals)]"}),
    "walk_outer": ("side outer", {"lower inside": "if edge == high:\n    enough = value > edge",
        "upper inside": "if edge == low:\n    enough = value >= edge", "lower outside": "",
        "upper outside": ""}),
    "enough": ("side", {"lower": "value >= edge", "upper": "value > edge"}),
    "walked": ("outside", {"dropped": "found = found[1:-1]",
        "value-error": "if found[0] or found[-1]:\n"
        '    raise ValueError("some numbers are outside the range")\n' "found = found[1:-1]",
        "extra": ""}),
    "walk_result": ("result", {"counts": "return found",
        "cumulative": "running = []\nfor number in found:\n"
        "    running.append(number + (running[-1] if running else 0))\nreturn running",
        "percent": "counted = sum(found)\n"
        "return [number * 100 // counted if counted else 0 for number in found]"}),
}
# fmt: on

DIVIDE = '''
def <<entry>>(values, low, width, count):
    """Find each bucket by a division."""
    if width < 1 or count < 1:
        <<bad>>
    buckets = [0] * (<<slots>>)
    for value in values:
        index = <<index>>
        <<outer_index>>
        <<place>>
    <<finished>>
'''

BISECT = """
from bisect import <<bisect>>
from collections import Counter
from itertools import accumulate


def <<entry>>(values, low, width, count):
    if min(width, count) <= 0:
        <<bad>>
    edges = list(range(low, low + width * count + 1, width))
    spots = [<<bisect>>(edges, <<nudged>>) for value in values]
    <<limit>>
    tally = Counter(spots)
    return <<tallied>>
"""

FILTER = """
def <<entry>>(values, low, width, count):
    if not (width >= 1 and count >= 1):
        <<bad>>
    high = low + width * count
    left = list(values)
    parts = []
    for number in range(count):
        start = low + number * width
        stop = start + width
        part = [value for value in left if (<<first_edge>>) and (<<last_edge>>)]
        left = [value for value in left if value not in part]
        parts.append(part)
    <<rest>>
    <<sizes>>
"""

HEADS = """
import operator


def <<entry>>(values, low, width, count):
    if width < 1 or count < 1:
        <<bad>>
    high = low + width * count
    below = <<below>>
    heads = []
    edge = low
    while edge <= high:
        heads.append(sum(1 for value in values if below(value, edge)))
        edge += width
    <<checked>>
    <<from_totals>>
"""

WALK = '''
class Ladder:
    """Edges that are climbed while the numbers rise."""

    def __init__(self, low, width, count):
        self.low, self.high = low, low + width * count
        self.edges = [low + step * width for step in range(count + 1)]
        self.found = [0 for _ in range(count + 2)]

    def passed(self, value, edge):
        low, high = self.low, self.high
        enough = <<enough>>
        <<walk_outer>>
        return enough

    def climb(self, values):
        rung = 0
        for value in sorted(values):
            while rung < len(self.edges) and self.passed(value, self.edges[rung]):
                rung += 1
            self.found[rung] += 1
        return self.found


def <<entry>>(values, low, width, count):
    if width <= 0 or count <= 0:
        <<bad>>
    found = Ladder(low, width, count).climb(values)
    <<walked>>
    <<walk_result>>
'''


def _entry(facets: Facets) -> str:
    return "histogram" if facets["result"] == "counts" else "bucket_shares"


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = [
        ([], 0, 10, 3), ([], 5, 1, 1), ([5], 0, 10, 0), ([5], 0, 0, 2), ([], 0, -1, 2),
        ([1, 2], 0, 5, -1), ([99], 0, 10, 0), ([5], 0, 10, 1), ([0], 0, 10, 1), ([10], 0, 10, 1),
        ([0, 10, 20, 30], 0, 10, 3), ([10, 20], 0, 10, 3), ([0, 5], 0, 10, 2), ([20, 5], 0, 10, 2),
        ([1, 9, 10, 11], 0, 10, 2), ([-1, 5], 0, 10, 2), ([21], 0, 10, 2), ([5, -9, 40], 0, 9, 2),
        ([-1, 0, 1], -2, 2, 2), ([-5, -3, -1], -6, 3, 2), ([-4, -2], -4, 2, 3), ([3], 0, 2, 2),
        ([7, 1, 5, 3], 0, 2, 4), ([1, 2, 3], 0, 1, 3), ([2, 3], 1, 1, 3), ([4, 4, 8, 1], 0, 4, 2),
    ]  # fmt: skip
    for number in range(22):
        low, width, count = rng.randint(-5, 5), rng.randint(1, 4), rng.randint(1, 4)
        slack = -1 if number % 3 and width * count > 2 else 2
        span = (low - slack, low + width * count + slack)
        calls.append(([rng.randint(*span) for _ in range(rng.randint(1, 9))], low, width, count))
    return calls


_source = partial(program, holes=HOLES, entry_point=_entry)
_divide, _bisect, _filter = _source(DIVIDE), _source(BISECT), _source(FILTER)
_heads, _walk = _source(HEADS), _source(WALK)

FAMILY = Family(
    name="histograms",
    split="test",
    entry_point=_entry,
    facets=facets_of(CLAUSES),
    instruction=contract(
        "Write `<<entry>>(values, low, width, count)` in `solution.py`. It sorts a list of "
        "integers, in any order, into `count` neighbouring buckets of equal `width`, the first of "
        "which begins at `low`, and gives a list of integers with one entry for each bucket.",
        CLAUSES,
        _entry,
    ),
    algorithms=(_divide, _bisect, _filter, _heads, _walk),
    slips=(
        altered(_divide, "    for value in values:", "    for value in set(values):"),
        altered(_divide, "if width < 1 or count < 1:", "if width < 0 or count < 1:"),
        altered(_bisect, "low + width * count + 1, width", "low + width * count, width"),
        altered(_filter, "stop = start + width", "stop = start + width - 1"),
        altered(_heads, "edge = low\n", "edge = 0\n"),
        altered(_walk, "for value in sorted(values):", "for value in values:"),
    ),
    inputs=_inputs,
)
