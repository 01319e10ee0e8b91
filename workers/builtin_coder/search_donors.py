"""Edits that take code from elsewhere in the program; part of the program run in the sandbox."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from workers.builtin_coder.search_expressions import SWAPS, Edit, Source, alter

_COMPARED = ("Lt", "LtE", "Gt", "GtE", "Eq", "NotEq")
_SHORT = 60


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


def donor_edits(source: Source) -> Iterator[tuple[str, Edit]]:
    for f in ast.walk(source.tree):
        if isinstance(f, ast.FunctionDef):
            tests = {source.text[slice(*source.span(n))].decode() for n in conditions(f)}
            yield from compared(source, f)
            yield from replaced(source, f)
            yield from joined(source, f, sorted(t for t in tests if len(t) < _SHORT))
            yield from copied(source, f)
