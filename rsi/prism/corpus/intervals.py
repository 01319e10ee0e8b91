"""Kata family: merge intervals on a number line."""

from __future__ import annotations

import random
from typing import Any

from rsi.prism.corpus.family import Facets, Family, altered, template

_TURNED = {
    "swap": "start, end = end, start",
    "skip": "continue",
    "error": 'raise ValueError("interval starts after its end")',
}
_PROSE_TURNED = {
    "swap": "A pair whose first number is larger than its second means the same interval "
    "written backwards: exchange the two.",
    "skip": "A pair whose first number is larger than its second is ignored.",
    "error": "A pair whose first number is larger than its second raises `ValueError`.",
}


def _name(facets: Facets) -> str:
    return "merge_intervals" if facets["form"] == "pairs" else "merge_spans"


def _instruction(facets: Facets) -> str:
    touching = (
        "Intervals that overlap, or that share just one end point, become one."
        if facets["touching"] == "join"
        else "Intervals that overlap become one; two that share just one end point stay apart."
    )
    below = (
        "Every part below zero is cut off, after the check on backward pairs."
        if facets["below"] == "clip"
        else "Negative numbers are as good as any others."
    )
    form = (
        "The result is a list of two-element lists `[start, end]`"
        if facets["form"] == "pairs"
        else 'The result is a list of dicts `{"start": ..., "end": ...}`'
    )
    order = "smallest" if facets["order"] == "ascending" else "largest"
    return (
        f"Write `{_name(facets)}(pairs)`: it takes a list of `[start, end]` lists of integers in "
        f"any order and merges them.\n\n- {touching}\n- {_PROSE_TURNED[facets['backward']]}\n"
        f"- {below}\n- An interval of length zero (also after cutting) covers nothing and does "
        f"not appear.\n- {form}, the {order} start first; no intervals give an empty list."
    )


def _holes(facets: Facets) -> dict[str, str]:
    pairs = facets["form"] == "pairs"
    return {
        "name": _name(facets),
        "cmp": "<=" if facets["touching"] == "join" else "<",
        "apart": "<" if facets["touching"] == "join" else "<=",
        "close_first": "1" if facets["touching"] == "keep" else "0",
        "turned": _TURNED[facets["backward"]],
        "floor": "0" if facets["below"] == "clip" else 'float("-inf")',
        "clip": "start, end = max(start, 0), max(end, 0)" if facets["below"] == "clip" else "pass",
        "out": "[start, end]" if pairs else '{"start": start, "end": end}',
        "reverse": "False" if facets["order"] == "ascending" else "True",
        "sign": "1" if facets["order"] == "ascending" else "-1",
    }


_SORTED = template(
    """
def <<name>>(pairs):
    clean = []
    for start, end in pairs:
        if start > end:
            <<turned>>
        <<clip>>
        if start != end:
            clean.append((start, end))
    clean.sort()
    merged = []
    for start, end in clean:
        if merged and start <<cmp>> merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return [<<out>> for start, end in merged[:: <<sign>>]]
""",
    _holes,
)

_EVENTS = template(
    """
def <<name>>(pairs):
    events = []
    for pair in pairs:
        start, end = pair[0], pair[1]
        if start > end:
            <<turned>>
        start = max(start, <<floor>>)
        end = max(end, <<floor>>)
        if end - start > 0:
            events += [(start, <<close_first>>, 1), (end, 1 - <<close_first>>, -1)]
    depth = 0
    opened = None
    found = {}
    for place, _, step in sorted(events):
        if depth == 0:
            opened = place
        depth += step
        if depth == 0:
            found[opened] = place
    order = sorted(found, reverse=<<reverse>>)
    return [<<out>> for start, end in ((key, found[key]) for key in order)]
""",
    _holes,
)

_INSERT = template(
    """
def _checked(pairs):
    for start, end in pairs:
        if start > end:
            <<turned>>
        <<clip>>
        yield start, end


def _insert(known, new):
    if not known:
        return (new,)
    head, *tail = known
    if new[1] <<apart>> head[0]:
        return (new, *known)
    if head[1] <<apart>> new[0]:
        return (head, *_insert(tail, new))
    wider = (min(head[0], new[0]), max(head[1], new[1]))
    return _insert(tail, wider)


def <<name>>(pairs):
    known = ()
    for start, end in _checked(pairs):
        known = _insert(known, (start, end)) if start < end else known
    return [<<out>> for start, end in known[:: <<sign>>]]
""",
    _holes,
)

_REDUCE = template(
    """
from functools import reduce


class Span(list):
    @property
    def end(self):
        return self[1]

    def meets(self, other):
        return other[0] <<cmp>> self.end


def _step(done, span):
    last = done[-1] if done else None
    return (
        [*done[:-1], Span((last[0], max(last.end, span.end)))]
        if last is not None and last.meets(span)
        else [*done, span]
    )


def _spans(pairs):
    for low, high in pairs:
        start, end = low, high
        if start > end:
            <<turned>>
        <<clip>>
        if start < end:
            yield Span((start, end))


def <<name>>(pairs):
    spans = reduce(_step, sorted(_spans(pairs)), [])
    spans.sort(reverse=<<reverse>>)
    return [<<out>> for start, end in spans]
""",
    _holes,
)

_GROUPS = template(
    """
def <<name>>(pairs):
    spans = set()
    for start, end in pairs:
        if start > end:
            <<turned>>
        <<clip>>
        spans.add((start, end))
    todo = {span for span in spans if span[0] < span[1]}
    groups = []
    while todo:
        low, high = todo.pop()
        grown = True
        while grown:
            near = {s for s in todo if s[0] <<cmp>> high and low <<cmp>> s[1]}
            grown = bool(near)
            todo -= near
            low = min([low, *(s[0] for s in near)])
            high = max([high, *(s[1] for s in near)])
        groups.append((low, high))
    groups.sort(key=lambda span: <<sign>> * span[0])
    return [<<out>> for start, end in groups]
""",
    _holes,
)

_CELLS = template(
    """
from itertools import groupby


def <<name>>(pairs):
    covered, joints = set(), set()
    for start, end in pairs:
        if start > end:
            <<turned>>
        <<clip>>
        covered.update(range(start, end))
        joints.update(range(start + 1, end))
    cuts = {cell for cell in covered if cell - 1 in covered and not (cell <<joined>>)}
    number, labels = 0, {}
    for cell in sorted(covered):
        number += cell in cuts or cell - 1 not in covered
        labels[cell] = number
    result = []
    for _, run in groupby(labels, key=labels.get):
        cells = list(run)
        start, end = cells[0], cells[-1] + 1
        result.insert(<<place>>, <<out>>)
    return result
""",
    lambda facets: {
        **_holes(facets),
        "joined": "is not None" if facets["touching"] == "join" else "in joints",
        "place": "len(result)" if facets["order"] == "ascending" else "0",
    },
)


_FIXED = (
    "; 1 4; 1 3, 3 5; 3 5, 1 3; 1 3, 4 6; 1 10, 2 3; 1 10, 2 3, 4 12; 2 3, 1 10; 5 2; "
    "5 2, 4 8; 7 7; 1 5, 5 5; -4 3; -4 -2; -4 -2, 1 2; -5 0, 0 4; 3 -2; 1 2, 1 2; "
    "0 2, 2 4, 4 6; 6 8, 1 2, 3 4; 1 6, 6 9, 2 3, 12 15; -3 1, -6 -3"
)


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    fixed = [
        [[int(number) for number in pair.split()] for pair in spans.split(",") if pair]
        for spans in _FIXED.split("; ")
    ]
    calls: list[tuple[Any, ...]] = [(spans,) for spans in fixed]
    for _ in range(26):
        spans = []
        for _ in range(rng.randint(2, 6)):
            start = rng.randint(-4 if rng.random() < 0.3 else 0, 20)
            length = rng.randint(0, 5)
            spans.append([start, start + length])
            if rng.random() < 0.12:
                spans[-1].reverse()
        calls.append((spans,))
    return calls


FAMILY = Family(
    name="intervals",
    split="train",
    entry_point=_name,
    facets={
        "touching": ("join", "keep"),
        "backward": ("swap", "skip", "error"),
        "below": ("clip", "allow"),
        "form": ("pairs", "dicts"),
        "order": ("ascending", "descending"),
    },
    instruction=_instruction,
    algorithms=(_SORTED, _EVENTS, _INSERT, _REDUCE, _GROUPS, _CELLS),
    slips=(
        altered(_SORTED, "= max(merged[-1][1], end)", "= end"),
        altered(_SORTED, "    clean.sort()\n", ""),
        altered(_REDUCE, "max(last.end, span.end)", "span.end"),
        altered(_GROUPS, "while grown:", "if grown:"),
        altered(_EVENTS, "if end - start > 0:", "if end - start > 1:"),
        altered(_INSERT, "min(head[0], new[0])", "head[0]"),
        altered(
            _CELLS, "covered.update(range(start, end))", "covered.update(range(start, end + 1))"
        ),
    ),
    inputs=_inputs,
)
