"""Boundary inputs by type: calls near those that the examples show."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from typing import Any

from workers.builtin_coder.check import Check
from workers.builtin_coder.notation import parse_expression

_MAX_TEXT = 160


def boundary_calls(checks: Sequence[Check], count: int, wide: bool, seed: int) -> tuple[str, ...]:
    """Propose up to `count` new calls, one argument varied at a time.

    Without `wide` the values stay among those that the examples show for that argument, their
    parts and their neighbours inside the shown range; with it they go one step beyond.
    """
    rows = [row for row in map(_plain_call, checks) if row is not None]
    taken = {ast.unparse(parse_expression(c.call) or ast.Constant(None)) for c in checks}
    rng = random.Random(seed)
    proposals: dict[str, None] = {}
    order = list(rows)
    rng.shuffle(order)
    for function, arguments in order:
        shown = [a for f, a in rows if f == function and len(a) == len(arguments)]
        for place in range(len(arguments)):
            column = [other[place] for other in shown]
            for value in _near(arguments[place], column, wide):
                changed = [*arguments[:place], value, *arguments[place + 1 :]]
                call = f"{function}({', '.join(map(repr, changed))})"
                if call not in taken and len(call) <= _MAX_TEXT:
                    proposals[call] = None
    calls = list(proposals)
    rng.shuffle(calls)
    return tuple(calls[:count])


def _plain_call(check: Check) -> tuple[str, list[Any]] | None:
    """Split a check of one call with literal positional arguments and a result."""
    tree = parse_expression(check.call)
    if check.setup or check.raises or not isinstance(tree, ast.Call) or tree.keywords:
        return None
    if not isinstance(tree.func, ast.Name):
        return None
    try:
        return tree.func.id, [ast.literal_eval(argument) for argument in tree.args]
    except (ValueError, TypeError, MemoryError, RecursionError):
        return None


def _near(value: Any, column: list[Any], wide: bool) -> Iterator[Any]:
    """Values of the same type that sit at or beside a boundary."""
    alike = [v for v in column if type(v) is type(value)]
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, (int, float)):
        low, high = min(alike), max(alike)
        for candidate in (value - 1, value + 1, low, high, 0, 1, -value, low - 1, high + 1):
            if wide or low <= candidate <= high:
                yield type(value)(candidate)
    elif isinstance(value, (str, list, tuple)):
        yield from alike
        yield from (v for v in _sequences(value, wide) if _same_alphabet(v, alike))
    elif isinstance(value, dict):
        yield from alike
        if value:
            yield dict(list(value.items())[:-1])
        if wide:
            yield {}


def _same_alphabet(value: Any, alike: list[Any]) -> bool:
    """Tell whether a text holds only characters that the examples show there."""
    return not isinstance(value, str) or set(value) <= set("".join(alike))


def _sequences(value: Any, wide: bool) -> Iterator[Any]:
    """Shorter, empty, reversed, repeated; for text also other case and outer blanks."""
    yield from (value[1:], value[:-1], value[:1])
    if wide:
        yield type(value)()
    yield from (value[::-1], value + value[:1], value + value)
    if isinstance(value, str) and wide:
        yield from (value.upper(), value.lower(), " " + value, value + " ")
    if isinstance(value, (list, tuple)) and value:
        yield from _inner(value, wide)


def _inner(value: Any, wide: bool) -> Iterator[Any]:
    """Sequences with the first or last element moved to a neighbour."""
    for place in {0, len(value) - 1}:
        for changed in list(_near(value[place], list(value), wide))[:4]:
            items = list(value)
            items[place] = changed
            yield type(value)(items)
