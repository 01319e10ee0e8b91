"""Duplicate records: keep one record for each value of a field."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rsi.prism.corpus.blocks import Clauses, Holes, contract, facets_of, program
from rsi.prism.corpus.family import Facets, Family, altered

CLAUSES: Clauses = {
    "keep": {
        "first": "Of the records with the same value, the first one is kept.",
        "last": "Of the records with the same value, the last one is kept.",
        "fullest": "Of the records with the same value, the one with the most fields is kept; "
        "of several such, the first.",
    },
    "order": {
        "appearance": "The result follows the order in which the values first appear.",
        "sorted": "The result is sorted by value, as compared, in rising order.",
    },
    "compare": {
        "exact": "Values are compared as they are: `A` and `a` differ.",
        "folded": "Values are compared without regard to case: `A` and `a` are the same value.",
    },
    "missing": {
        "key-error": "A record without the field raises `KeyError`.",
        "dropped": "A record without the field is left out.",
        "empty": "A record without the field counts as one whose value is the empty string.",
    },
    "result": {
        "records": "The result is the list of the kept records, unchanged.",
        "counted": "The result is a list of `[record, count]` lists: the kept record and how many "
        "records have its value.",
    },
}

HOLES: Holes = {
    "pick": (
        "keep",
        {"first": "group[0]", "last": "group[-1]", "fullest": "max(group, key=len)"},
    ),
    "get": (
        "missing compare",
        {
            "key-error exact": "record[field]",
            "dropped exact": "record[field]",
            "empty exact": 'record.get(field, "")',
            "key-error folded": "record[field].lower()",
            "dropped folded": "record[field].lower()",
            "empty folded": 'record.get(field, "").lower()',
        },
    ),
    "skip": (
        "missing",
        {
            "key-error": "",
            "dropped": "if field not in record:\n    continue",
            "empty": "",
        },
    ),
    "present": (
        "missing",
        {"key-error": "", "dropped": " if field in record", "empty": ""},
    ),
    "better": (
        "keep",
        {
            "first": "",
            "last": "kept[value] = record",
            "fullest": "if len(record) > len(kept[value]):\n    kept[value] = record",
        },
    ),
    "replaces": (
        "keep",
        {"first": "False", "last": "True", "fullest": "len(other) > len(chosen)"},
    ),
    "values": ("order", {"appearance": "kept", "sorted": "sorted(kept)"}),
    "group_order": (
        "order",
        {
            "appearance": "groups.sort(key=lambda group: group[0][1])",
            "sorted": "",
        },
    ),
    "slot_order": ("order", {"appearance": "", "sorted": "slots.sort(key=itemgetter(0))"}),
    "sort_input": (
        "order",
        {"appearance": "", "sorted": "rows = sorted(rows, key=lambda row: row[0])"},
    ),
    "grouped": (
        "order",
        {"appearance": "groups.values()", "sorted": "[groups[v] for v in sorted(groups)]"},
    ),
    "entry_of": (
        "result",
        {"records": "kept[value]", "counted": "[kept[value], times[value]]"},
    ),
    "of_group": (
        "result",
        {"records": "choose(group)", "counted": "[choose(group), len(group)]"},
    ),
    "of_run": (
        "result",
        {"records": "<<pick>>", "counted": "[<<pick>>, len(group)]"},
    ),
    "of_slot": (
        "result",
        {"records": "best", "counted": "[best, count]"},
    ),
    "of_same": (
        "result",
        {"records": "chosen", "counted": "[chosen, 1 + len(same)]"},
    ),
}

GROUPS = '''
def choose(group):
    return <<pick>>


def <<entry>>(records, field):
    """Keep one record for each value of the field."""
    groups = {}
    for record in records:
        <<skip>>
        groups.setdefault(<<get>>, []).append(record)
    result = []
    for group in <<grouped>>:
        result.append(<<of_group>>)
    return result
'''

ONE_PASS = """
def <<entry>>(records, field):
    kept = {}
    times = {}
    for record in records:
        <<skip>>
        value = <<get>>
        if value not in kept:
            kept[value] = record
            times[value] = 1
        else:
            times[value] += 1
            <<better>>
    result = []
    for value in <<values>>:
        result.append(<<entry_of>>)
    return result
"""

RUNS = """
from itertools import groupby


def <<entry>>(records, field):
    def value_of(record):
        return <<get>>

    numbered = [
        (value_of(record), place, record)
        for place, record in enumerate(records)<<present>>
    ]
    numbered.sort(key=lambda row: row[:2])
    groups = [list(run) for _, run in groupby(numbered, key=lambda row: row[0])]
    <<group_order>>
    picked = [[record for _, _, record in rows] for rows in groups]
    return [<<of_run>> for group in picked]
"""

SLOTS = """
from operator import itemgetter


class Slot(list):
    \"\"\"A value, the best record so far and the number of records.\"\"\"

    def meet(self, other):
        _, chosen, count = self
        self[1:] = [other if <<replaces>> else chosen, count + 1]


def find(slots, value):
    i = 0
    while i < len(slots):
        if slots[i][0] == value:
            return slots[i]
        i += 1
    return None


def <<entry>>(records, field):
    slots = []
    for i in range(len(records)):
        record = records[i]
        <<skip>>
        slot = find(slots, <<get>>)
        if slot is None:
            slots.append(Slot([<<get>>, record, 1]))
        else:
            slot.meet(record)
    <<slot_order>>
    return [<<of_slot>> for _, best, count in slots]
"""

RECURSE = """
def gather(rows):
    if not rows:
        return []
    (value, chosen), *others = rows
    same = [record for found, record in others if found == value]
    for other in same:
        chosen = other if <<replaces>> else chosen
    rest = [row for row in others if row[0] != value]
    return [<<of_same>>, *gather(rest)]


def <<entry>>(records, field):
    rows = [(<<get>>, record) for record in records<<present>>]
    <<sort_input>>
    return gather(rows)
"""


def _entry(facets: Facets) -> str:
    return "count_records" if facets["result"] == "counted" else "unique_records"


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    def row(name: str, n: int, *more: str) -> dict[str, Any]:
        return {"name": name, "n": n, **dict.fromkeys(more, 1)}

    calls: list[tuple[Any, ...]] = [([], "name"), ([row("b", 1)], "name")]
    calls += [
        ([row("b", 1), row("a", 2), row("b", 3)], "name"),
        ([row("b", 1), row("b", 1)], "name"),
        ([row("b", 1), row("a", 2), row("c", 3)], "name"),
        ([row("b", 1), row("b", 2, "x"), row("b", 3, "y"), row("a", 4)], "name"),
        ([row("b", 1, "x", "y"), row("b", 2, "x"), row("b", 3)], "name"),
        ([row("B", 1), row("a", 2), row("b", 3), row("A", 4)], "name"),
        ([row("b", 1), row("A", 2), row("C", 3)], "name"),
        ([row("ab", 1), row("a", 2), row("b", 3), row("", 4)], "name"),
        ([{"n": 1}, row("b", 2)], "name"),
        ([row("b", 1), {"n": 2}, {"n": 3}, row("a", 4)], "name"),
        ([row("", 1), {"n": 2, "x": 1}, row("a", 3), {"n": 4}], "name"),
        ([{"n": 1}], "name"),
        ([{"n": 1, "id": "q"}, {"n": 2, "id": "p"}, {"n": 3, "id": "q"}], "id"),
    ]
    for size in range(2, 7):
        for _ in range(5):
            rows = []
            for n in range(size):
                more = rng.sample(["x", "y", "z"], rng.randint(0, 2))
                rows.append(row(rng.choice(["a", "b", "c", "A", "B", ""]), n, *more))
            calls.append((rows, "name"))
    return calls


_source = partial(program, holes=HOLES, entry_point=_entry)
_groups, _one_pass, _runs = _source(GROUPS), _source(ONE_PASS), _source(RUNS)
_slots, _recurse = _source(SLOTS), _source(RECURSE)

FAMILY = Family(
    name="dedupe",
    split="selection",
    entry_point=_entry,
    facets=facets_of(CLAUSES),
    instruction=contract(
        "Write `<<entry>>(records, field)` in `solution.py`. It takes a list of dictionaries and "
        "the name of a field whose values are strings, and keeps one record for each value. "
        "The list has at most 200 records.",
        CLAUSES,
        _entry,
    ),
    algorithms=(_groups, _one_pass, _runs, _slots, _recurse),
    slips=(
        altered(_groups, "    return result", "        return result"),
        altered(_runs, "numbered.sort(key=lambda row: row[:2])", ""),
        altered(_slots, "if slots[i][0] == value:", "if slots[i][0] in value:"),
        altered(_slots, "for i in range(len(records)):", "for i in range(1, len(records)):"),
        altered(_recurse, "rest = [row for row in others if", "rest = [row for row in rows[2:] if"),
        altered(_runs, "enumerate(records)", "enumerate(records[:-1])"),
    ),
    inputs=_inputs,
)
