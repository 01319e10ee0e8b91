"""Call functions of the program in the working directory; print one JSON line a call.

Usage: drive.py CALLS, a JSON list of {module, function, arguments}; `arguments` is the literal
of (positional, named). A line holds `call` (index) and one of `value` (a literal), `raises` (the
name of an exception) or `opaque` (no literal).
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import pprint
import signal
import sys
from types import FrameType
from typing import Any

CALL_SECONDS = 1.0
MAX_CHARS = 300


class TooSlow(BaseException):
    pass


def _alarm(_number: int, _frame: FrameType | None) -> None:
    raise TooSlow


def _outcome(call: dict[str, str]) -> dict[str, str]:
    signal.setitimer(signal.ITIMER_REAL, CALL_SECONDS)
    try:
        positional, named = ast.literal_eval(call["arguments"])
        function = getattr(importlib.import_module(call["module"]), call["function"])
        return _shown(function(*positional, **named))
    except BaseException as error:
        return {"raises": type(error).__name__[:80]}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _shown(value: Any) -> dict[str, str]:
    text = pprint.pformat(value, width=1_000_000, sort_dicts=True)
    if len(text) > MAX_CHARS:
        return {"opaque": type(value).__name__}
    try:
        same = bool(ast.literal_eval(text) == value)
    except (ValueError, SyntaxError):
        same = False
    return {"value": text} if same else {"opaque": type(value).__name__}


def main(path: str) -> None:
    """Run every call with the program's own output discarded."""
    with open(path, encoding="utf-8") as source:
        calls = json.load(source)
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    discard = os.open(os.devnull, os.O_WRONLY)
    os.dup2(discard, 1)
    os.dup2(discard, 2)
    sys.path[:0] = [os.getcwd(), os.path.join(os.getcwd(), "src")]
    signal.signal(signal.SIGALRM, _alarm)
    for index, call in enumerate(calls):
        lines.write(json.dumps({"call": index, **_outcome(call)}) + "\n")
        lines.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
