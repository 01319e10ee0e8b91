"""What can be rebuilt from the journal at any time: the lineage and the outcome tables.

Reads the events that `evolution.loop` and `workers.evaluator` record; keys that an event does
not have are left out, so a journal of an earlier version still projects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workers.journal import Event


def lineage_of(events: Iterable[Event]) -> dict[str, Any]:
    """Every candidate with its parents, decision and scores, and the winner when there is one."""
    candidates: dict[str, dict[str, Any]] = {}
    lineage: dict[str, Any] = {"candidates": candidates, "decisions": [], "winner": None}
    for event in events:
        if event.kind == "candidate":
            candidates.setdefault(event.key, {"candidateId": event.key}).update(event.data)
        elif event.kind == "decision":
            lineage["decisions"].append({"key": event.key, **event.data})
        elif event.kind in ("winner", "frozen", "release"):
            lineage[event.kind] = event.data
    return lineage


def outcomes_of(events: Iterable[Event]) -> dict[str, list[dict[str, Any]]]:
    """The rollouts of each strategy by id, in the order they finished."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if event.kind == "rollout":
            tables.setdefault(event.data["strategyId"], []).append(event.data)
    return tables
