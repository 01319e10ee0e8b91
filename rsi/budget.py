"""What may be spent, what was spent, and the one meter that holds every ceiling."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import Field

from rsi.errors import LimitReached
from rsi.wire import Record


class Caps(Record):
    """Fixed inference ceilings of one rollout on one task, whatever the strategy says.

    Tokens and calls are totals over all agents; seconds are sandbox run time and wall time.
    """

    model_calls: int = Field(120, ge=1, le=10_000)
    input_tokens: int = Field(600_000, ge=1_000, le=100_000_000)
    output_tokens: int = Field(120_000, ge=100, le=10_000_000)
    sandbox_seconds: float = Field(300.0, ge=1, le=86_400)
    wall_seconds: float = Field(600.0, ge=1, le=86_400)


class Budget(Record):
    """What a whole run may spend; None means no ceiling of that kind.

    `usd` counts model prices, `wall_seconds` counts from the first dispatch of the run.
    """

    rollouts: int = Field(ge=1, le=10_000_000)
    tokens: int | None = Field(None, ge=1_000)
    usd: float | None = Field(None, ge=0)
    wall_seconds: float | None = Field(None, ge=1)


class Spend(Record):
    """Amounts used: calls, tokens, sandbox and wall seconds, US dollars, rollouts."""

    rollouts: int = Field(0, ge=0)
    model_calls: int = Field(0, ge=0)
    input_tokens: int = Field(0, ge=0)
    output_tokens: int = Field(0, ge=0)
    sandbox_seconds: float = Field(0.0, ge=0)
    wall_seconds: float = Field(0.0, ge=0)
    usd: float = Field(0.0, ge=0)

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Spend) -> Spend:
        return Spend(
            **{name: getattr(self, name) + getattr(other, name) for name in type(self).model_fields}
        )


@dataclass(frozen=True)
class Reservation:
    """Amounts set aside for one owner until they are settled."""

    owner: str
    amounts: Mapping[str, float]


@dataclass
class Meter:
    """Reserve before spending, settle after: the sum of both never passes a ceiling.

    `limits` maps an amount's name to its ceiling; a name without a ceiling is counted only.
    Safe for threads; settling for more than was reserved is recorded, since it was spent.
    """

    limits: Mapping[str, float]
    spent: dict[str, dict[str, float]] = field(default_factory=dict)
    _held: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def total(self, name: str) -> float:
        """Sum what all owners spent of one amount."""
        return sum(amounts.get(name, 0.0) for amounts in self.spent.values())

    def room(self, name: str) -> float:
        """Tell how much of an amount is neither spent nor reserved; infinity without ceiling."""
        ceiling = self.limits.get(name)
        if ceiling is None:
            return float("inf")
        return ceiling - self.total(name) - self._held.get(name, 0.0)

    def reserve(self, owner: str, amounts: Mapping[str, float]) -> Reservation:
        """Set amounts aside; raises LimitReached naming the first ceiling without room."""
        with self._lock:
            for name, amount in amounts.items():
                if amount > self.room(name):
                    raise LimitReached(name)
            for name, amount in amounts.items():
                self._held[name] = self._held.get(name, 0.0) + amount
            return Reservation(owner, dict(amounts))

    def settle(self, reservation: Reservation, actual: Mapping[str, float]) -> None:
        """Give a reservation back and book what was really used."""
        with self._lock:
            for name, amount in reservation.amounts.items():
                self._held[name] -= amount
            book = self.spent.setdefault(reservation.owner, {})
            for name, amount in actual.items():
                book[name] = book.get(name, 0.0) + amount

    def charge(self, owner: str, actual: Mapping[str, float]) -> None:
        """Book what was spent without a reservation (found in the journal of an earlier try)."""
        self.settle(Reservation(owner, {}), actual)
