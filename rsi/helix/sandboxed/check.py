"""A suite of single calls: each must give the value, or raise the exception, that is written.

The cases lie beside this script in cases.json: {module, function, arguments, call} with `value`
(a literal) or `raises` (the name of an exception class or of one it derives from).
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import signal
import sys
from pathlib import Path

CASE_SECONDS = 2


def check(case: dict[str, str]) -> None:
    """Raise AssertionError unless the program does what the case says."""
    positional, named = ast.literal_eval(case["arguments"])
    function = getattr(importlib.import_module(case["module"]), case["function"])
    try:
        got = function(*positional, **named)
    except Exception as error:
        names = {kind.__name__ for kind in type(error).__mro__}
        assert case.get("raises") in names, f"{case['call']} raised {type(error).__name__}"
        return
    assert "value" in case, f"{case['call']} gave {got!r}, {case['raises']} was to be raised"
    wanted = ast.literal_eval(case["value"])
    assert got == wanted, f"{case['call']} gave {got!r}, wanted {wanted!r}"


def main() -> None:
    """Check all cases against the program under test."""
    root = os.environ.get("TP_PROGRAM_ROOT", os.getcwd())
    sys.path[:0] = [root, os.path.join(root, "src")]
    cases = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))
    for case in cases:
        signal.alarm(CASE_SECONDS)
        check(case)
    signal.alarm(0)


if __name__ == "__main__":
    main()
