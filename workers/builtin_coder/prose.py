"""Sentences that state a check without an example."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from workers.builtin_coder.check import Check
from workers.builtin_coder.notation import parse_expression

_UNTOUCHED = re.compile(
    r"[^.\n]*(?:\b(?:arguments?|inputs?|lists?|dict\w*|pairs)\b[^.\n]*\bunchanged\b|"
    r"\b(?:not|never|without) (?:be )?(?:modif|mutat|chang|alter)\w*[^.\n]*"
    r"\b(?:arguments?|inputs?|list|dict\w*|in place)\b)[^.\n]*",
    re.IGNORECASE,
)
_MOST = 3
_MUTABLE = (ast.List, ast.Dict, ast.Set)


def untouched_arguments(requirement: str, checks: Sequence[Check]) -> tuple[Check, ...]:
    """Checks that a call leaves its arguments as they were, when the requirement says so.

    The longest few calls with lists, dictionaries or sets among their arguments are taken.
    """
    sentence = _UNTOUCHED.search(requirement)
    if sentence is None:
        return ()
    quote = sentence.group().strip()[:200]
    calls = [c for c in checks if not c.setup and not c.raises]
    calls.sort(key=lambda c: -len(c.call))
    found = [check for c in calls if (check := _afterwards(c.call, quote))]
    return tuple(found[:_MOST])


def _afterwards(call: str, quote: str) -> Check | None:
    tree = parse_expression(call)
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.keywords:
        return None
    place = next((i for i, a in enumerate(tree.args) if isinstance(a, _MUTABLE)), None)
    if place is None:
        return None
    given = ast.unparse(tree.args[place])
    tree.args[place] = ast.Name("given")
    return Check("given", given, setup=(f"given = {given}", ast.unparse(tree)), quote=quote)
