"""Edits that take code from elsewhere in the program; part of the program run in the sandbox."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from typing import Any

from workers.builtin_coder.search_expressions import SWAPS, Edit, Source, alter

_COMPARED = ("Lt", "LtE", "Gt", "GtE", "Eq", "NotEq")
_SHORT = 60
# the beginning of a character class that also ends in its literal
_CLASS = re.compile(rb"\[\^?(?=[^\]]+\])")


def conditions(f: Any) -> list[ast.expr]:
    """Tests of a function's branches, loops and comprehensions, and what they are made of."""
    found: list[ast.expr] = []
    for n in ast.walk(f):
        if isinstance(n, (ast.If, ast.While, ast.IfExp)):
            found.append(n.test)
        elif isinstance(n, ast.comprehension):
            found += n.ifs
        elif isinstance(n, ast.BoolOp):
            found += n.values
    return found


def joined(source: Source, f: Any, tests: list[str]) -> Iterator[tuple[str, Edit]]:
    """Decide a condition, or join it with another one."""
    for n in conditions(f):
        start, end = source.span(n)
        own = source.text[start:end].decode()
        for new in ("True", "False"):
            yield "Decide", (start, end, new.encode())
        for other in tests:
            if other != own:
                for form in ("({} and {})", "({} or {})", "({} and not {})", "({} or not {})"):
                    yield "Join", (start, end, form.format(own, other).encode())


def replaced(source: Source, f: Any) -> Iterator[tuple[str, Edit]]:
    """Put an expression of one place into another of the same function."""
    donors: dict[str, type] = {}
    places: list[Any] = []
    for n in ast.walk(f):
        if isinstance(n, ast.expr) and not isinstance(getattr(n, "ctx", 0), (ast.Store, ast.Del)):
            start, end = source.span(n)
            if end - start < _SHORT and not isinstance(n, (ast.JoinedStr, ast.FormattedValue)):
                places.append(n)
                donors.setdefault(source.text[start:end].decode(), type(n))
    for n in places:
        start, end = source.span(n)
        own = source.text[start:end].decode()
        simple = isinstance(n, (ast.Name, ast.Constant))
        for text, kind in donors.items():
            alike = kind in (ast.Name, ast.Constant) if simple else kind is type(n)
            if alike and text != own:
                yield "Replace", (start, end, text.encode())


def compared(source: Source, f: Any) -> Iterator[tuple[str, Edit]]:
    """Comparisons that the usual swaps leave out."""
    for n in ast.walk(f):
        if isinstance(n, ast.Compare) and type(n.ops[0]).__name__ in _COMPARED:
            for word in _COMPARED:
                if word not in SWAPS[type(n.ops[0]).__name__]:
                    op = getattr(ast, word)()
                    yield "Compared", source.edit(n, alter(n, ops=[op, *n.ops[1:]]))


def copied(source: Source, f: Any) -> Iterator[tuple[str, Edit]]:
    """Copy a simple statement before another."""
    found = [
        n
        for n in ast.walk(f)
        if isinstance(n, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Continue, ast.Raise))
    ]
    texts = {source.text[slice(*source.span(n))]: None for n in found if n.lineno == n.end_lineno}
    for n in found:
        start, end = source.span(n)
        for text in texts:
            if text != source.text[start:end]:
                yield "Copy", (start, start, text + b"\n" + b" " * n.col_offset)


def widened(source: Source, characters: str) -> Iterator[tuple[str, Edit]]:
    """Let the character classes of patterns hold one more character: one of them, or all."""
    places = []
    for n in ast.walk(source.tree):
        if isinstance(n, ast.Constant) and isinstance(n.value, str):
            start, end = source.span(n)
            literal = source.text[start:end]
            places += [start + m.end() for m in _CLASS.finditer(literal)]
    places.sort()
    for char in characters:
        new = ("\\" * (char in "\\]^-") + char).encode()
        for place in places:
            yield "Class", (place, place, new)
        if len(places) > 1:
            a, b = places[0], places[-1]
            parts = [source.text[p:q] for p, q in itertools.pairwise(places)]
            yield "Class", (a, b, new + b"".join(part + new for part in parts))


def donor_edits(source: Source, characters: str) -> Iterator[tuple[str, Edit]]:
    yield from widened(source, characters)
    for f in ast.walk(source.tree):
        if isinstance(f, ast.FunctionDef):
            tests = {source.text[slice(*source.span(n))].decode() for n in conditions(f)}
            yield from compared(source, f)
            yield from replaced(source, f)
            yield from joined(source, f, sorted(t for t in tests if len(t) < _SHORT))
            yield from copied(source, f)
