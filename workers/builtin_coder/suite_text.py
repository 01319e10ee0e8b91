"""The suite as the coder writes it: a table of checks and a small runner around it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence

from workers.builtin_coder.examples import Check

TEST_FILE = "test_requirement.py"
ENTRY_TEXT = '#!/bin/sh\nexec python3 -B "$TP_SUBMISSION/test_requirement.py"\n'
_STATED, _DERIVED = "stated", "derived"
_TOP = '''"""Tests of the requirement: each row is set-up, call, expected value or error, origin."""
import math
import os
import signal
import sys
import unittest

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


def outcome(setup, call, names):
    scope = dict(names)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    try:
        if setup:
            exec(setup, scope)
        return eval(call, scope), ""
    except Exception as error:
        return None, type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def failures(names):
    signal.signal(signal.SIGALRM, late)
    wrong = []
    for setup, call, expected, error, origin in CASES:
        got, raised = outcome(setup, call, names)
        if raised != error or (not error and not same(got, expected)):
            wanted = error or repr(expected)
            wrong.append(f"{call}: expected {wanted}, got {raised or repr(got)} [{origin}]")
        if raised == "TimeoutError" != error:
            break
    return wrong


class Requirement(unittest.TestCase):
    def test_cases(self):
        wrong = failures({names})
        self.assertEqual(len(wrong), 0, "\\n" + "\\n".join(line[:300] for line in wrong))


if __name__ == "__main__":
    unittest.main()
"""


def write_suite(checks: Sequence[Check], modules: Sequence[str], room: int) -> str:
    """Render the test file for program modules (dotted names), within `room` JSON characters.

    Checks that do not fit are left out from the end, derived ones before stated ones.
    """
    imports = "\n".join(f"import {name}" for name in modules)
    names = "{" + ", ".join(f"**vars({name})" for name in modules) + "}"
    top = _TOP.replace("{imports}", imports)
    bottom = _BOTTOM.replace("{names}", names)
    space = room - json_length(top) - json_length(bottom)
    rows = []
    for check in sorted(checks, key=lambda c: not c.stated):
        row = _row(check)
        space -= json_length(row)
        if space < 0:
            break
        rows.append(row)
    return top + "".join(rows) + bottom


def _row(check: Check) -> str:
    setup = "\n".join(check.setup)
    origin = _STATED if check.stated else _DERIVED
    expected = check.expected or "None"
    return f"    ({setup!r}, {check.call!r}, {expected}, {check.raises!r}, {origin!r}),\n"


def json_length(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False)) - 2


def read_suite(text: str) -> tuple[Check, ...]:
    """Read the checks back from a test file of this form; empty for any other text."""
    checks = []
    for line in text.splitlines():
        row = re.match(r"^ {4}(\(.*\)),$", line)
        check = _parse_row(row.group(1)) if row else None
        if check:
            checks.append(check)
    return tuple(checks)


def _parse_row(row: str) -> Check | None:
    try:
        tree = ast.parse(row, mode="eval").body
        if not isinstance(tree, ast.Tuple) or len(tree.elts) != 5:
            return None
        setup, call, _, raises, origin = tree.elts
        parts = [ast.literal_eval(node) for node in (setup, call, raises, origin)]
    except (ValueError, SyntaxError):
        return None
    if not all(isinstance(part, str) for part in parts):
        return None
    expected = "" if parts[2] else ast.unparse(tree.elts[2])
    lines = tuple(parts[0].split("\n")) if parts[0] else ()
    return Check(parts[1], expected, parts[2], lines, stated=parts[3] == _STATED)
