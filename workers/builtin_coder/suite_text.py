"""The suite as the coder writes it: a table of checks and a small runner around it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence

from workers.builtin_coder.check import Check
from workers.builtin_coder.notation import called_names, normal

TEST_FILE = "test_requirement.py"
ENTRY_TEXT = '#!/bin/sh\nexec python3 -B "$TP_SUBMISSION/test_requirement.py"\n'
_STATED, _DERIVED = "stated", "derived"
_TOP = '''"""Tests of the requirement: each row is call, expected value, expected error, origin."""
import math
import os
import signal
import sys

sys.path.insert(0, os.environ["TP_PROGRAM_ROOT"])
{imports}

LIMIT = 2.0
CASES = [
'''
_BOTTOM = """]


def same(left, right):
    if isinstance(left, float) and isinstance(right, float):
        return left == right or math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    if type(left) is type(right) and isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def late(signum, frame):
    raise TimeoutError(f"no answer in {LIMIT} s")


def outcome(call):
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    try:
        return call(), ""
    except Exception as error:
        return None, type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def failures(most=1000):
    signal.signal(signal.SIGALRM, late)
    wrong = []
    for call, expected, error, origin in CASES:
        got, raised = outcome(call)
        if raised != error or (not error and not same(got, expected)):
            with open(__file__) as f:
                row = f.read().split("\\n")[call.__code__.co_firstlineno - 1].strip()
            wrong.append(f"{row} got {raised or repr(got)[:200]}")
        if raised == "TimeoutError" != error or len(wrong) > most:
            break
    return wrong


if __name__ == "__main__":
    found = failures()
    assert not found, "\\n" + "\\n".join(found)
"""
_FAILURE = re.compile(r"^(\(lambda: .*\)), got (.*)$", re.MULTILINE)


def write_suite(
    checks: Sequence[Check], modules: Mapping[str, str], fallback: str, room: int
) -> str:
    """Render the test file within `room` JSON characters.

    `modules` gives the dotted module of each public name, `fallback` that of any other. Checks
    that do not fit are left out from the end, derived ones before stated ones.
    """
    wanted: dict[str, set[str]] = {}
    for check in checks:
        for name in names_of(check):
            wanted.setdefault(modules.get(name, fallback), set()).add(name)
    imports = [f"from {m} import {', '.join(sorted(names))}" for m, names in sorted(wanted.items())]
    top = _TOP.replace("{imports}", "\n".join(imports) or f"import {fallback}")
    space = room - json_length(top) - json_length(_BOTTOM)
    rows = []
    for check in sorted(checks, key=lambda c: not c.stated):
        row = row_of(check) + "\n"
        space -= json_length(row)
        if space < 0:
            break
        rows.append(row)
    return top + "".join(rows) + _BOTTOM


def names_of(check: Check) -> tuple[str, ...]:
    """Names of the program that a check uses, without the variables of its set-up."""
    own = {line.split("=", 1)[0].strip() for line in check.setup if _assigned(line)}
    used = [n for line in (*check.setup, check.call) for n in called_names(_value(line))]
    return tuple(dict.fromkeys(n for n in used if n not in own))


def _assigned(line: str) -> bool:
    return bool(re.match(r"^[A-Za-z_]\w*\s*=(?!=)", line))


def _value(line: str) -> str:
    return line.split("=", 1)[1] if _assigned(line) else line


def row_of(check: Check) -> str:
    """The line of one check in the table of the suite."""
    call = normal(check.call)
    if check.setup:
        steps = []
        for line in check.setup:
            name = line.split("=", 1)[0].strip()
            steps.append(f"{name} := {_value(line).strip()}" if _assigned(line) else line)
        call = f"({', '.join(steps)}, {call})[-1]"
    origin = _STATED if check.stated else _DERIVED
    expected = check.expected or "None"
    return f"    (lambda: {call}, {expected}, {check.raises!r}, {origin!r}),"


def json_length(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False)) - 2


def read_suite(text: str) -> tuple[Check, ...]:
    """Read the checks back from a test file of this form; empty for any other text."""
    rows = re.findall(r"^ {4}(\(lambda: .*\)),$", text, re.MULTILINE)
    return tuple(check for row in rows if (check := _parse_row(row)))


def read_failures(output: str) -> list[tuple[Check, str]]:
    """Failing checks in the output of such a suite, each with what the program gave."""
    found = [(_parse_row(row), got) for row, got in _FAILURE.findall(output)]
    return [(check, got) for check, got in found if check is not None]


def _parse_row(row: str) -> Check | None:
    try:
        tree = ast.parse(row, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    if not isinstance(tree, ast.Tuple) or len(tree.elts) != 4:
        return None
    call, expected, raises, origin = tree.elts
    if not (isinstance(call, ast.Lambda) and isinstance(raises, ast.Constant)):
        return None
    setup, body = _steps(call.body)
    return Check(
        ast.unparse(body),
        "" if raises.value else ast.unparse(expected),
        str(raises.value),
        setup,
        stated=isinstance(origin, ast.Constant) and origin.value == _STATED,
    )


def _steps(body: ast.expr) -> tuple[tuple[str, ...], ast.expr]:
    """Part a `(step, ..., call)[-1]` into its set-up and the call."""
    if not (isinstance(body, ast.Subscript) and isinstance(body.value, ast.Tuple)):
        return (), body
    *steps, last = body.value.elts
    return tuple(
        f"{ast.unparse(s.target)} = {ast.unparse(s.value)}"
        if isinstance(s, ast.NamedExpr)
        else ast.unparse(s)
        for s in steps
    ), last
