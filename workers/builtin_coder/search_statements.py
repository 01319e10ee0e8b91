"""Edits of statements, names and guards; part of the search program that runs in the sandbox."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from workers.builtin_coder.search_expressions import Edit, Source

TESTS = ("not {}", "{} is None", "{} < 0", "{} <= 0", "{} == 1")
FORMS = ("abs({})", "{}.lower()", "{}.strip()", "list({})", "sorted({})", "list(set({}))")
WRAPS = ("int({})", "str({})", "{}.lower()", "abs({})", "sorted({})")
USUAL = (2, 10, 60, 100, 1000)
RESULTS = ("not {}", "-{}", "{}[::-1]", "sorted({})", "list({})", "{}.strip()", "{} + 1", "{} - 1")


def of_body(source: Source, body: list[Any], errors: list[str]) -> Iterator[tuple[str, Edit]]:
    for i, s in enumerate(body):
        a, b = source.span(s)
        code = source.text[a:b]
        yield "Delete", (a, b, b"pass")
        if not hasattr(s, "body"):
            for error in errors:
                yield "Error", (a, b, ("raise " + error).encode())
        if i and isinstance(body[i - 1], (ast.Assign, ast.AugAssign, ast.Expr, ast.If)):
            c, d = source.span(body[i - 1])
            yield "Swap", (c, b, code + source.text[d:a] + source.text[c:d])
        if isinstance(s, (ast.Break, ast.Continue)):
            yield "Jump", (a, b, b"continue" if code == b"break" else b"break")
        if isinstance(s, ast.If):
            yield "Jump", (a, a + 2, b"while")
        if isinstance(s, ast.While):
            yield "Jump", (a, a + 5, b"if")
        if isinstance(s, ast.Assign):
            for op in (b"+=", b"-="):
                yield "Assign", (a, b, code.replace(b"=", op, 1))
        if isinstance(s, ast.AugAssign):
            target = source.span(s.target)
            yield "Assign", (target[1], source.span(s.value)[0], b" = ")
        if isinstance(s, ast.Return) and s.value:
            for form in RESULTS:
                text = "return " + form.format("(" + ast.unparse(s.value) + ")")
                yield "Return", (a, b, text.encode())


def moved(source: Source, loop: Any) -> Iterator[tuple[str, Edit]]:
    """Take the last simple statement of a loop out of it."""
    last = loop.body[-1]
    a, b = source.span(last)
    if len(loop.body) > 1 and not loop.orelse and last.lineno == last.end_lineno:
        start = source.span(loop)[0]
        above = source.text[start : source.starts[last.lineno - 1]]
        yield "Move", (start, b, above + b" " * loop.col_offset + source.text[a:b])


def guards(
    source: Source, f: Any, values: list[str], errors: list[str]
) -> Iterator[tuple[str, Edit]]:
    names = [x.arg for x in f.args.args if x.arg != "self"]
    first = f.body[0]
    if ast.get_docstring(f) is not None and len(f.body) > 1:
        first = f.body[1]
    start = source.span(first)[0]
    below = "\n" + " " * first.col_offset
    acts = ["return " + v for v in [*values, *names]] + ["raise " + e for e in errors]
    for name in names:
        for test in TESTS:
            for act in acts:
                line = "if " + test.format(name) + ": " + act + below
                yield "Guard", (start, start, line.encode())
        for form in FORMS:
            line = name + " = " + form.format(name) + below
            yield "Prepare", (start, start, line.encode())
    for one in names:
        for two in names:
            if one != two:
                for act in acts:
                    line = "if " + one + " > " + two + ": " + act + below
                    yield "Guard", (start, start, line.encode())


def renamed(source: Source, f: Any, errors: list[str]) -> Iterator[tuple[str, Edit]]:
    stored = {n.id for n in ast.walk(f) if isinstance(n, ast.Name) and type(n.ctx) is ast.Store}
    names = sorted(stored | {x.arg for x in f.args.args} - {"self"})
    for n in ast.walk(f):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in names:
            for other in names:
                if other != n.id:
                    yield "Rename", (*source.span(n), other.encode())
        named = n.exc if isinstance(n, ast.Raise) else getattr(n, "type", None)
        named = getattr(named, "func", named)
        if isinstance(named, ast.Name):
            for error in errors:
                yield "Error", (*source.span(named), error.encode())


def wrapped(source: Source, f: Any) -> Iterator[tuple[str, Edit]]:
    callees = {id(n.func) for n in ast.walk(f) if isinstance(n, ast.Call)}
    for n in ast.walk(f):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in callees:
            for form in WRAPS:
                yield "Wrap", (*source.span(n), form.format(n.id).encode())


def literals_nearby(source: Source) -> Iterator[tuple[str, Edit]]:
    """Usual numbers, and texts with a repetition sign or one character more or less."""
    for n in ast.walk(source.tree):
        if not isinstance(n, ast.Constant) or n.lineno != n.end_lineno:
            continue
        others: list[Any] = []
        if type(n.value) is int:
            others = [x for x in USUAL if x != n.value]
        elif isinstance(n.value, str):
            v = n.value
            others = [v[: i + 1] + "+" + v[i + 1 :] for i, c in enumerate(v) if c in "])"]
            others += [v[:i] + v[i + 1 :] for i, c in enumerate(v) if c in "+*?^$" or len(v) < 9]
        start, end = source.span(n)
        prefix = source.text[start : start + 1] in (b"r", b"'", b'"', b"0") or type(n.value) is int
        for other in others if prefix else []:
            yield "Literal", (start, end, repr(other).encode())


def statement_edits(
    source: Source, values: list[str], errors: list[str]
) -> Iterator[tuple[str, Edit]]:
    yield from literals_nearby(source)
    for n in ast.walk(source.tree):
        for body in (getattr(n, "body", 0), getattr(n, "orelse", 0)):
            if isinstance(body, list) and not isinstance(n, (ast.Module, ast.ClassDef)):
                yield from of_body(source, body, errors)
        if isinstance(n, (ast.For, ast.While)):
            yield from moved(source, n)
        if isinstance(n, ast.FunctionDef):
            yield from renamed(source, n, errors)
            yield from wrapped(source, n)
            yield from guards(source, n, values, errors)
