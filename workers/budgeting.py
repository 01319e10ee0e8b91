"""How a run's budget is metered: what a rollout reserves, what it costs, and the wall clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rsi.budget import Budget, Caps, Meter, Spend


def meter_of(budget: Budget) -> Meter:
    """A meter with the ceilings `rollouts`, `tokens` and `usd` of a budget."""
    ceilings = {"rollouts": budget.rollouts, "tokens": budget.tokens, "usd": budget.usd}
    return Meter({name: float(most) for name, most in ceilings.items() if most is not None})


def reserved_for(caps: Caps, usd: float) -> dict[str, float]:
    """The most that one rollout can use: its token caps, and `usd` dollars for them."""
    return {"rollouts": 1.0, "tokens": float(caps.input_tokens + caps.output_tokens), "usd": usd}


def used_by(spend: Spend) -> dict[str, float]:
    """What a spend takes from a budget, a rollout itself not counted."""
    return {"tokens": float(spend.tokens), "usd": spend.usd}


def lost_of(reserved: Mapping[str, float]) -> dict[str, float]:
    """What an attempt without an answer is charged: all it may have used, but no rollout."""
    return {name: amount for name, amount in reserved.items() if name != "rollouts"}


@dataclass
class Stopwatch:
    """Working time of a run in seconds against a ceiling (None = no ceiling).

    Starts at the first dispatch; `before_s` is what earlier processes of the same run used, so
    the time in which a run lay interrupted does not count.
    """

    limit_s: float | None
    before_s: float = 0.0
    now: Callable[[], float] = time.monotonic
    _started: float | None = None

    def start(self) -> None:
        """Begin to count, the first time it is called."""
        if self._started is None:
            self._started = self.now()

    @property
    def elapsed_s(self) -> float:
        here = 0.0 if self._started is None else self.now() - self._started
        return self.before_s + here

    @property
    def left_s(self) -> float:
        """Seconds until the deadline; negative after it, infinite without one."""
        return float("inf") if self.limit_s is None else self.limit_s - self.elapsed_s
