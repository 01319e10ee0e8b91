"""Spiral reading: list the numbers of a table along a spiral."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rsi.prism.corpus.blocks import Clauses, Holes, contract, facets_of, program
from rsi.prism.corpus.family import Facets, Family, altered

CLAUSES: Clauses = {
    "corner": {
        "top-left": "The spiral begins at the top left corner.",
        "top-right": "The spiral begins at the top right corner.",
        "bottom-left": "The spiral begins at the bottom left corner.",
        "bottom-right": "The spiral begins at the bottom right corner.",
    },
    "turn": {
        "clockwise": "It goes clockwise along the border and on to the middle.",
        "counterclockwise": "It goes counterclockwise along the border and on to the middle.",
    },
    "way": {
        "inward": "The numbers are listed from the corner to the middle.",
        "outward": "The numbers are listed backwards, from the middle to the corner.",
    },
    "ragged": {
        "value-error": "Rows of different length raise `ValueError`.",
        "zeros": "When rows differ in length, shorter rows are filled up with `0` on the right.",
        "cut": "When rows differ in length, all are cut to the length of the shortest.",
    },
    "empty": {
        "list": "A table without any number, after the rule for rows of different length, "
        "gives `[]`.",
        "none": "A table without any number, after the rule for rows of different length, "
        "gives `None`.",
    },
}

_ORIENTED = {
    "top-left clockwise": "table",
    "top-right clockwise": "list(zip(*table))[::-1]",
    "bottom-right clockwise": "[row[::-1] for row in table[::-1]]",
    "bottom-left clockwise": "list(zip(*table[::-1]))",
    "top-left counterclockwise": "list(zip(*table))",
    "top-right counterclockwise": "[row[::-1] for row in table]",
    "bottom-right counterclockwise": "list(zip(*table[::-1]))[::-1]",
    "bottom-left counterclockwise": "table[::-1]",
}
_REFUSE = 'raise ValueError("rows differ in length")'

HOLES: Holes = {
    "oriented": ("corner turn", _ORIENTED),
    "even": (
        "ragged",
        {
            "value-error": "if len({len(row) for row in table}) > 1:\n    " + _REFUSE,
            "zeros": "width = max((len(row) for row in table), default=0)\n"
            "table = [row + [0] * (width - len(row)) for row in table]",
            "cut": "width = min((len(row) for row in table), default=0)\n"
            "table = [row[:width] for row in table]",
        },
    ),
    "zipped": (
        "ragged",
        {
            "value-error": "if any(len(row) != len(table[0]) for row in table):\n    "
            + _REFUSE
            + "\ncolumns = list(zip(*table))",
            "zeros": "columns = list(itertools.zip_longest(*table, fillvalue=0))",
            "cut": "columns = list(zip(*table))",
        },
    ),
    "width": (
        "ragged",
        {
            "value-error": "width = len(table[0]) if table else 0\n"
            "for row in table:\n    if len(row) != width:\n        " + _REFUSE,
            "zeros": "width = 0\nfor row in table:\n    width = max(width, len(row))",
            "cut": "width = len(table[0]) if table else 0\n"
            "for row in table:\n    width = min(width, len(row))",
        },
    ),
    "cell": (
        "ragged",
        {
            "value-error": "table[r][c]",
            "zeros": "table[r][c] if c < len(table[r]) else 0",
            "cut": "table[r][c]",
        },
    ),
    "nothing": ("empty", {"list": "[]", "none": "None"}),
    "listed": ("way", {"inward": "spiral", "outward": "spiral[::-1]"}),
    "reverse": ("way", {"inward": "", "outward": "spiral.reverse()"}),
    "joined": ("way", {"inward": "ring + peel(inner)", "outward": "peel(inner) + ring[::-1]"}),
    "start": (
        "corner",
        {
            "top-left": "0, 0",
            "top-right": "0, width - 1",
            "bottom-left": "height - 1, 0",
            "bottom-right": "height - 1, width - 1",
        },
    ),
    "heading": (
        "corner turn",
        {
            "top-left clockwise": "0, 1",
            "top-right clockwise": "1, 0",
            "bottom-right clockwise": "0, -1",
            "bottom-left clockwise": "-1, 0",
            "top-left counterclockwise": "1, 0",
            "top-right counterclockwise": "0, -1",
            "bottom-right counterclockwise": "-1, 0",
            "bottom-left counterclockwise": "0, 1",
        },
    ),
    "turned": ("turn", {"clockwise": "down, -right", "counterclockwise": "-down, right"}),
    "place": (
        "corner turn",
        {
            "top-left clockwise": "c, r, width, height",
            "top-right clockwise": "r, width - 1 - c, height, width",
            "bottom-right clockwise": "width - 1 - c, height - 1 - r, width, height",
            "bottom-left clockwise": "height - 1 - r, c, height, width",
            "top-left counterclockwise": "r, c, height, width",
            "top-right counterclockwise": "width - 1 - c, r, width, height",
            "bottom-right counterclockwise": "height - 1 - r, width - 1 - c, height, width",
            "bottom-left counterclockwise": "c, height - 1 - r, width, height",
        },
    ),
}

BORDERS = '''
def <<entry>>(table):
    """Move four borders towards each other."""
    <<even>>
    grid = <<oriented>>
    spiral = []
    top, bottom = 0, len(grid) - 1
    left, right = 0, len(grid[0]) - 1 if grid else -1
    while top <= bottom and left <= right:
        spiral.extend(grid[top][left : right + 1])
        spiral.extend(grid[row][right] for row in range(top + 1, bottom + 1))
        if top < bottom and left < right:
            spiral.extend(grid[bottom][col] for col in range(right - 1, left - 1, -1))
            spiral.extend(grid[row][left] for row in range(bottom - 1, top, -1))
        top, bottom, left, right = top + 1, bottom - 1, left + 1, right - 1
    if not spiral:
        return <<nothing>>
    return <<listed>>
'''

ROTATE = """
import itertools


def <<entry>>(table):
    <<zipped>>
    table = [list(row) for row in zip(*columns)]
    rest = <<oriented>>
    spiral = []
    while rest:
        spiral += rest[0]
        rest = list(zip(*rest[1:]))[::-1]
    <<reverse>>
    return spiral or <<nothing>>
"""

WALK = """
def <<entry>>(table):
    height = len(table)
    <<width>>
    cells = {}
    for r in range(height):
        for c in range(width):
            cells[r, c] = <<cell>>
    if len(cells) == 0:
        return <<nothing>>
    r, c = <<start>>
    down, right = <<heading>>
    spiral = [cells.pop((r, c))]
    while cells:
        if (r + down, c + right) not in cells:
            right, down = <<turned>>
        if (r + down, c + right) not in cells:
            right, down = -right, -down
        r, c = r + down, c + right
        spiral.append(cells.pop((r, c)))
    <<reverse>>
    return spiral
"""

PEEL = """
def peel(grid):
    if not grid or not grid[0]:
        return []
    first, *middle = grid
    last = middle.pop() if middle else []
    right = [row[-1] for row in middle]
    left = [row[0] for row in middle if len(row) > 1]
    back = last if len(first) > 1 else last[:1]
    ring = [*first, *right, *reversed(back), *reversed(left)]
    inner = [row[1:-1] for row in middle]
    return <<joined>>


def <<entry>>(table):
    <<even>>
    numbers = peel(<<oriented>>)
    if numbers == []:
        return <<nothing>>
    return numbers
"""

RANKED = """
def rank(x, y, wide, high):
    ring = min(x, y, wide - 1 - x, high - 1 - y)
    if y == ring:
        return ring, 0, x
    if x == wide - 1 - ring:
        return ring, 1, y
    if y == high - 1 - ring:
        return ring, 2, -x
    return ring, 3, -y


def <<entry>>(table):
    height = len(table)
    <<width>>
    if height == 0 or width == 0:
        return <<nothing>>
    order = sorted(
        (rank(<<place>>), (r, c)) for r in range(height) for c in range(width)
    )
    spiral = [<<cell>> for _, (r, c) in order]
    return <<listed>>
"""


def _entry(facets: Facets) -> str:
    return "spiral_in" if facets["way"] == "inward" else "spiral_out"


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    def grid(height: int, width: int) -> list[list[int]]:
        return [[row * width + col + 1 for col in range(width)] for row in range(height)]

    tables: list[list[list[int]]] = [[], [[]], [[], []], [[1], []], [[], [1, 2]], [[7]]]
    sizes = [(1, 2), (1, 4), (2, 1), (4, 1), (2, 2), (2, 3), (3, 2), (3, 3), (2, 5), (5, 2)]
    sizes += [(3, 4), (4, 3), (4, 4), (3, 5), (5, 3), (5, 5), (4, 5), (5, 4), (6, 3), (3, 6)]
    tables += [grid(height, width) for height, width in sizes]
    tables += [
        [[1, 2], [3]],
        [[1], [2, 3]],
        [[1, 2, 3], [4, 5, 6], [7]],
        [[1, 2], [3, 4], [5, 6, 7]],
    ]
    tables += [[[5, 5], [5, 5]], [[0, 0, 1], [0, 1, 0]], [[-1, -2], [-3, -4]]]
    for _ in range(10):
        height, width = rng.randint(1, 5), rng.randint(1, 5)
        tables.append([[rng.randint(-9, 99) for _ in range(width)] for _ in range(height)])
    return [(table,) for table in tables]


_source = partial(program, holes=HOLES, entry_point=_entry)
_borders, _rotate, _walk = _source(BORDERS), _source(ROTATE), _source(WALK)
_peel, _ranked = _source(PEEL), _source(RANKED)

FAMILY = Family(
    name="matrices",
    split="release",
    entry_point=_entry,
    facets=facets_of(CLAUSES),
    instruction=contract(
        "Write `<<entry>>(table)` in `solution.py`. It takes a list of rows, each a list of "
        "integers, and gives a flat list of the numbers along a spiral: each number once. "
        "A single row or column is read from the corner to its other end. "
        "The table has at most 40 rows and columns.",
        CLAUSES,
        _entry,
    ),
    algorithms=(_borders, _rotate, _walk, _peel, _ranked),
    slips=(
        altered(_borders, "if top < bottom and left < right:", "if top <= bottom:"),
        altered(_borders, "while top <= bottom and", "while top < bottom and"),
        altered(_rotate, "rest = list(zip(*rest[1:]))[::-1]", "rest = list(zip(*rest[1:]))"),
        altered(
            _peel, "ring = [*first, *right, *reversed(back),", "ring = [*first, *right, *back,"
        ),
        altered(_peel, "inner = [row[1:-1] for row in middle]", "inner = middle[1:-1]"),
        altered(_ranked, "return ring, 3, -y", "return ring, 3, y"),
        altered(_ranked, "if x == wide - 1 - ring:", "if x == wide - ring:"),
    ),
    inputs=_inputs,
)
