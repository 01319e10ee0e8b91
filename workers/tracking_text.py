"""How events are told to a reader of the tracking server: tables, texts and numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rsi.prism.outcome import Outcome
from rsi.wire import to_snake

COLUMNS = ["task_id", "repetition", "scope", "f", "s", "a", "r", "label", "failure", "cells"]
COLUMNS += ["tokens", "usd", "sandbox_seconds"]


def row_of(rollout: Mapping[str, Any], outcome: Outcome | None, repetition: str) -> list[Any]:
    """One line of an outcome table; scores are None without a complete outcome."""
    scored = outcome if outcome is not None and outcome.complete else None
    spend = rollout.get("spend", {})
    cells = [f"{c.implementation_id}:{c.verdict.state}" for c in outcome.cells] if outcome else []
    return [
        rollout.get("taskId"),
        repetition,
        rollout.get("scope"),
        scored.f if scored else None,
        scored.s if scored else None,
        scored.a if scored else None,
        scored.r if scored else None,
        rollout.get("label", ""),
        rollout.get("failure", ""),
        " ".join(cells),
        spend.get("inputTokens", 0) + spend.get("outputTokens", 0),
        spend.get("usd", 0.0),
        spend.get("sandboxSeconds", 0.0),
    ]


def diagnosis_of(told: Mapping[str, Any]) -> str:
    """What led to a candidate, as Markdown."""
    lines = [f"# {told.get('candidateId', 'candidate')}", "", str(told.get("diagnosis", "")), ""]
    for edit in told.get("edits", ()):
        change = f"{json.dumps(edit.get('from'))} → {json.dumps(edit.get('to'))}"
        lines.append(f"- `{edit.get('field')}`: {change}. {edit.get('why', '')}".rstrip())
    if told.get("lesson"):
        lines += ["", f"Lesson: {told['lesson']}"]
    return "\n".join(lines).rstrip() + "\n"


def scores_of(side: Mapping[str, Any]) -> dict[str, Any]:
    """The scores of one side of a final test, each with the ends of its interval."""
    found: dict[str, Any] = {}
    for name, score in side.get("scores", {}).items():
        interval = score.get("interval") or {}
        found[name] = score.get("value")
        found[f"{name}_low"], found[f"{name}_high"] = interval.get("low"), interval.get("high")
    return found


def numbers_of(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """The finite numbers in nested objects by dotted snake_case name; lists are left out."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            name = re.sub(r"[^\w .:/-]", "_", to_snake(str(key)), flags=re.ASCII)
            yield from numbers_of(below, f"{path}.{name}" if path else name)
    elif isinstance(value, int | float) and not isinstance(value, bool) and path:
        yield path, float(value)


def leaves_of(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every value in nested objects as text, by dotted name: what parameters are made of."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from leaves_of(below, f"{path}.{key}" if path else str(key))
    elif path:
        text = value if isinstance(value, str) else json.dumps(value)
        yield re.sub(r"[^\w .:/-]", "_", path, flags=re.ASCII)[:250], text[:6_000]


def without_password(uri: str) -> str:
    """A URI as it may be shown."""
    return re.sub(r"//[^/@]*@", "//", uri)


def first_line(error: Exception) -> str:
    """An error's class and the start of what it says, on one line."""
    lines = str(error).strip().splitlines()
    return without_password(f"{type(error).__name__}: {lines[0] if lines else ''}"[:200])
