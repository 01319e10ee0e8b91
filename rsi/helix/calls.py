"""Calls to try on programs: literals found in suites and requirement, and their boundaries."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rsi.prism.tree import Tree

MAX_SOURCE_BYTES = 200_000
MAX_ARGUMENT_CHARS = 400
MAX_CALL_CHARS = 400
MAX_CALLS_A_TEXT = 300
MAX_TRIES_A_CALL = 12
_NEIGHBOURS = 5
_TEXTS = (".md", ".txt", ".rst")
# what hostile source can make the parser raise
_PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError, TypeError)


@dataclass(frozen=True)
class ProgramCall:
    """A function of the program and the literal of its (positional, named) arguments."""

    module: str
    function: str
    arguments: str

    @property
    def shown(self) -> str:
        positional, named = ast.literal_eval(self.arguments)
        parts = [*map(repr, positional), *(f"{key}={value!r}" for key, value in named.items())]
        return f"{self.function}({', '.join(parts)})"


def public_functions(programs: Sequence[Tree]) -> dict[str, str]:
    """Public top-level functions that all programs define in the same file, with the module."""
    found = [dict(_functions(program)) for program in programs]
    first = found[0] if found else {}
    return {
        name: module
        for name, module in first.items()
        if all(other.get(name) == module for other in found)
    }


def calls_to_try(
    functions: dict[str, str], suites: Iterable[Tree], texts: Sequence[str], most: int, seed: int
) -> list[ProgramCall]:
    """At most `most` distinct calls: a third as found, the others boundary variants of them.

    Equal arguments give equal calls in every process; `seed` draws among the variants.
    """
    seen = [*_in_suites(functions, suites), *_in_texts(functions, texts)]
    found = list(dict.fromkeys(c for c in (_call(functions, *s) for s in seen) if c))
    known = set(found)
    varied = list(
        dict.fromkeys(
            call
            for name, positional, named in _variants(found)
            if (call := _call(functions, name, positional, named)) and call not in known
        )
    )
    random.Random(seed).shuffle(varied)
    kept = found[: max(most - len(varied), -(-most // 3))]
    return [*kept, *varied][:most]


def documents(program: Tree) -> list[str]:
    """The texts of a program that a reader would take for documentation."""
    return [
        program.text(path)
        for path, file in sorted(program.files.items())
        if path.endswith(_TEXTS) and len(file.content) <= MAX_SOURCE_BYTES
    ]


def boundaries(value: Any) -> list[Any]:
    """Simple neighbours of a value by its type, the emptiest first."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [0, 1, -1, value - 1, value + 1, -value]
    if isinstance(value, float):
        return [0.0, 1.0, -value, value + 0.5]
    if isinstance(value, str):
        return [
            "",
            value[:1],
            value[:-1],
            value + value,
            " " + value,
            value.swapcase(),
            value[::-1],
        ]
    if isinstance(value, list):
        return [[], value[:1], value[:-1], value + value, value[::-1], value + value[:1]]
    if isinstance(value, tuple):
        return [(), value[:1], value[:-1], value + value, value[::-1], value + value[:1]]
    if isinstance(value, dict):
        items = list(value.items())
        return [{}, dict(items[:1]), dict(items[::-1])]
    return []


def _functions(program: Tree) -> Iterator[tuple[str, str]]:
    for path in sorted(program.files):
        name = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
        name = name.removesuffix(".__init__")
        module = _parsed(program, path)
        if module is None or not all(part.isidentifier() for part in name.split(".")):
            continue
        for node in module.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith(("_", "test")):
                yield node.name, name


def _parsed(tree: Tree, path: str) -> ast.Module | None:
    file = tree.files[path]
    if not path.endswith(".py") or len(file.content) > MAX_SOURCE_BYTES:
        return None
    try:
        return ast.parse(file.content)
    except _PARSE_ERRORS:
        return None


Seen = tuple[str, tuple[Any, ...], dict[str, Any]]


def _in_suites(functions: dict[str, str], suites: Iterable[Tree]) -> Iterator[Seen]:
    for suite in suites:
        for path in sorted(suite.files):
            module = _parsed(suite, path)
            for node in ast.walk(module) if module else ():
                if isinstance(node, ast.Call):
                    yield from _literal_call(functions, node)


def _in_texts(functions: dict[str, str], texts: Sequence[str]) -> Iterator[Seen]:
    if not functions:
        return
    start = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(functions)))})\(")
    for text in texts:
        for match in islice(start.finditer(text[:MAX_SOURCE_BYTES]), MAX_CALLS_A_TEXT):
            rest = text[match.start() : match.start() + MAX_CALL_CHARS]
            ends = (i + 1 for i, char in enumerate(rest) if char == ")")
            for end in islice(ends, MAX_TRIES_A_CALL):
                try:
                    node = ast.parse(rest[:end], mode="eval").body
                except _PARSE_ERRORS:
                    continue
                if isinstance(node, ast.Call):
                    yield from _literal_call(functions, node)
                break


def _literal_call(functions: dict[str, str], node: ast.Call) -> Iterator[Seen]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    name = node.func.id if isinstance(node.func, ast.Name) else name
    if name not in functions:
        return
    try:
        positional = tuple(ast.literal_eval(item) for item in node.args)
        named = {key.arg: ast.literal_eval(key.value) for key in node.keywords if key.arg}
    except _PARSE_ERRORS:
        return
    if len(named) == len(node.keywords):
        yield name, positional, named


def _call(
    functions: dict[str, str], name: str, positional: tuple[Any, ...], named: dict[str, Any]
) -> ProgramCall | None:
    text = repr((positional, named))
    try:
        fits = len(text) <= MAX_ARGUMENT_CHARS and ast.literal_eval(text) == (positional, named)
    except _PARSE_ERRORS:
        fits = False
    return ProgramCall(functions[name], name, text) if fits else None


def _variants(calls: Sequence[ProgramCall]) -> Iterator[Seen]:
    """Each call with one argument moved to a boundary or swapped for another call's."""
    values = [(c.function, *ast.literal_eval(c.arguments)) for c in calls]
    for name, positional, named in values:
        for place, value in enumerate(positional):
            others = [p[place] for n, p, _ in values if n == name and len(p) > place]
            for other in [*boundaries(value), *others[:_NEIGHBOURS]]:
                yield name, (*positional[:place], other, *positional[place + 1 :]), named
        for key, value in named.items():
            for other in boundaries(value):
                yield name, positional, {**named, key: other}
