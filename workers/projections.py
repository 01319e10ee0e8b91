"""What can be rebuilt from the journal at any time: the lineage and the outcome tables.

Reads the events that `evolution.loop` and `workers.evaluator` record; keys that an event does
not have are left out, so a journal of an earlier version still projects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workers.journal import Event

# what lineage.json keeps of an event; the rest stays in the journal
_COMPARED = ("generation", "baselineId", "tasks", "rar", "rarInterval", "difference", "interval")
_DECIDED = ("generation", "incumbentId", "promoted", "reason", "pValue", "alpha", "interval")


def lineage_of(events: Iterable[Event]) -> dict[str, Any]:
    """Every candidate with its parents, scores and decisions, and the winner when there is one."""
    candidates: dict[str, dict[str, Any]] = {}
    lineage: dict[str, Any] = {"candidates": candidates, "winner": None}
    for event in events:
        told = event.data
        if event.kind == "candidate":
            found = {"candidateId": event.key, **told, "comparisons": [], "decisions": []}
            candidates[event.key] = found
        elif event.kind == "comparison" and told.get("candidateId") in candidates:
            candidates[told["candidateId"]]["comparisons"].append(_part(told, _COMPARED))
        elif event.kind == "decision" and told.get("candidateId") in candidates:
            candidates[told["candidateId"]]["decisions"].append(_part(told, _DECIDED))
        elif event.kind in ("selection", "winner", "frozen", "release"):
            lineage[event.kind] = told
    return lineage


def _part(told: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: told[name] for name in names if name in told}


def outcomes_of(events: Iterable[Event]) -> dict[str, list[dict[str, Any]]]:
    """The rollouts of each strategy by id, in the order they finished."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if event.kind == "rollout":
            tables.setdefault(event.data["strategyId"], []).append(event.data)
    return tables
