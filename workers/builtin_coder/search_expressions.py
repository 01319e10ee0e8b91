"""Small edits of expressions; part of the search program that runs in the sandbox.

An edit is (start, end, new bytes) on the source; a kind names the node it changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

Edit = tuple[int, int, bytes]

# operator -> what it may have been meant to be
SWAPS = {
    "Lt": "LtE Gt", "LtE": "Lt GtE", "Gt": "GtE Lt", "GtE": "Gt LtE", "Eq": "NotEq GtE LtE",
    "NotEq": "Eq Lt Gt", "In": "NotIn", "NotIn": "In", "Is": "IsNot", "IsNot": "Is",
    "Add": "Sub Mult", "Sub": "Add", "Mult": "Add Pow FloorDiv", "Div": "FloorDiv Mult",
    "FloorDiv": "Div Mod", "Mod": "FloorDiv", "Pow": "Mult", "And": "Or", "Or": "And",
    "BitAnd": "BitOr", "BitOr": "BitAnd BitXor", "BitXor": "BitOr", "LShift": "RShift",
    "RShift": "LShift", "USub": "UAdd",
}  # fmt: skip
# function or method -> its neighbours
WORDS = {
    "min": "max", "max": "min", "any": "all", "all": "any", "round": "int floor", "int": "round",
    "sorted": "list", "list": "sorted set", "set": "list", "sum": "len max", "len": "sum",
    "floor": "ceil", "ceil": "floor", "lower": "upper casefold", "upper": "lower title",
    "lstrip": "strip rstrip", "rstrip": "strip lstrip", "strip": "lstrip rstrip",
    "startswith": "endswith", "endswith": "startswith", "find": "rfind", "rfind": "find",
    "index": "rindex", "append": "extend", "extend": "append", "split": "rsplit",
    "isalpha": "isalnum", "isalnum": "isalpha", "isdigit": "isalnum", "islower": "isupper",
    "isupper": "islower", "title": "capitalize", "capitalize": "title", "popleft": "pop",
    "partition": "rpartition", "rpartition": "partition", "union": "intersection",
    "ljust": "rjust", "rjust": "ljust", "appendleft": "append", "float": "int",
    "bisect_left": "bisect_right", "bisect_right": "bisect_left", "items": "values",
}  # fmt: skip


def alter(node: Any, **new: Any) -> Any:
    return type(node)(**{**dict(ast.iter_fields(node)), **new})


def constants(value: Any) -> Iterator[ast.expr]:
    others: list[Any] = []
    if isinstance(value, bool):
        others = [not value]
    elif isinstance(value, (int, float)):
        others = [value + 1, value - 1, -value, 0, 1, value * 10, value // 10]
    elif isinstance(value, str):
        others = ["", " ", value.lower(), value.upper(), value.strip(), value + " "]
    for other in dict.fromkeys(others):
        if other != value:
            yield ast.Constant(other)


def calls(n: Any) -> Iterator[ast.expr]:
    f = n.func
    field = "id" if isinstance(f, ast.Name) else "attr"
    name = getattr(f, field, "")
    for word in WORDS.get(name, "").split():
        yield alter(n, func=alter(f, **{field: word}))
    if isinstance(f, ast.Attribute):
        yield f.value
    yield from n.args[:1]
    for i in range(len(n.args)):
        yield alter(n, args=n.args[:i] + n.args[i + 1 :])
        yield alter(n, args=n.args[:i] + n.args[i : i + 2][::-1] + n.args[i + 2 :])
    for i in range(len(n.keywords)):
        yield alter(n, keywords=n.keywords[:i] + n.keywords[i + 1 :])
    if name in ("sorted", "sort"):
        yield alter(n, keywords=[*n.keywords, ast.keyword("reverse", ast.Constant(True))])
    if name in ("sorted", "sort", "min", "max"):
        for key in ("len", "abs", "str.lower"):
            yield alter(n, keywords=[*n.keywords, ast.keyword("key", ast.Name(key))])
    if name == "range" and len(n.args) == 1:
        yield alter(n, args=[ast.Constant(1), *n.args])


def shifted(n: ast.expr) -> Iterator[ast.expr]:
    for op in (ast.Add(), ast.Sub()):
        yield ast.BinOp(n, op, ast.Constant(1))


def slices(n: Any) -> Iterator[ast.expr]:
    yield n.value
    for part in ("lower", "upper", "step"):
        yield alter(n, slice=alter(n.slice, **{part: None}))
    yield alter(n, slice=alter(n.slice, step=ast.Constant(-1)))
    yield alter(n, slice=alter(n.slice, lower=ast.Constant(1)))


def variants(n: Any) -> Iterator[ast.AST]:
    for i, op in enumerate(getattr(n, "ops", [])):
        for word in SWAPS.get(type(op).__name__, "").split():
            yield alter(n, ops=[*n.ops[:i], getattr(ast, word)(), *n.ops[i + 1 :]])
    for word in SWAPS.get(type(getattr(n, "op", 0)).__name__, "").split():
        yield alter(n, op=getattr(ast, word)())
    if isinstance(n, ast.BinOp):
        yield from (n.left, n.right, alter(n, left=n.right, right=n.left))
    elif isinstance(n, ast.BoolOp):
        yield from n.values
    elif isinstance(n, ast.UnaryOp):
        yield n.operand
    elif isinstance(n, ast.Constant):
        yield from constants(n.value)
    elif isinstance(n, ast.Call):
        yield from calls(n)
        yield from shifted(n)
    elif isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Slice):
        yield from slices(n)
    elif isinstance(n, ast.IfExp):
        yield alter(n, body=n.orelse, orelse=n.body)
    elif isinstance(n, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        g: list[Any] = n.generators
        for i in range(len(g)):
            yield alter(n, generators=[*g[:i], alter(g[i], ifs=[]), *g[i + 1 :]])
    elif isinstance(n, ast.Name):
        yield from shifted(n)


class Source:
    """The text of a program, its tree, and edits on its bytes that keep everything else."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.starts = [0]
        for line in self.text.splitlines(True):
            self.starts.append(self.starts[-1] + len(line))
        self.tree = ast.parse(self.text)

    def span(self, n: Any) -> tuple[int, int]:
        start = self.starts[n.lineno - 1] + n.col_offset
        return start, self.starts[n.end_lineno - 1] + n.end_col_offset

    def edit(self, n: ast.AST, new: ast.AST) -> Edit:
        text = ast.unparse(ast.fix_missing_locations(new))
        if isinstance(new, (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.UnaryOp)):
            text = "(" + text + ")"
        return (*self.span(n), text.encode())

    def expression_edits(self) -> Iterator[tuple[str, Edit]]:
        for n in ast.walk(self.tree):
            if isinstance(getattr(n, "ctx", 0), (ast.Store, ast.Del)):
                continue
            if isinstance(n, (ast.expr, ast.AugAssign)):
                for new in variants(n):
                    yield type(n).__name__, self.edit(n, new)
            if isinstance(n, (ast.If, ast.While)):
                yield "Test", self.edit(n.test, ast.UnaryOp(ast.Not(), n.test))

    def apply(self, edits: list[Edit]) -> bytes:
        text = self.text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text
