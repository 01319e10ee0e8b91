"""What evolution needs of the world: rollouts, and a place where lineage is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from rsi.records import Rollout, RolloutRequest


class Evaluator(Protocol):
    """Plays rollouts in parallel; answers in request order.

    Raises LimitReached when the run's budget has no room for a request.
    """

    def evaluate(self, requests: Sequence[RolloutRequest]) -> list[Rollout]: ...


class Ledger(Protocol):
    """Append-only record of a run.

    `once` returns the recorded data of an event when `(kind, key)` is already there, and else
    makes, appends and returns it: that is how an interrupted run repeats no decision.
    """

    def once(self, kind: str, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]: ...
