"""The caps of one rollout: every model call and sandbox run is reserved first, settled after."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rsi.budget import Caps, Meter, Spend
from rsi.errors import LimitReached, ModelRefused, ModelUnavailable
from rsi.ports import (
    Completed,
    Execution,
    Isolation,
    LanguageModel,
    ModelReply,
    ModelRequest,
    Sandbox,
)

# what a sandbox may take beyond its wall limit to kill a run
KILL_GRACE_S = 1.0
_AMOUNTS = ("model_calls", "input_tokens", "output_tokens", "sandbox_seconds")


@dataclass
class Allowance:
    """What one rollout may spend, shared by its agents; LimitReached names the cap without room.

    Wall time is a deadline: nothing starts after it, a model call is cut off at it, and a
    sandbox run in flight ends by its own limit. `clock` gives seconds and never goes back.
    """

    caps: Caps
    clock: Callable[[], float] = time.monotonic
    meter: Meter = field(init=False)
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.meter = Meter({name: getattr(self.caps, name) for name in _AMOUNTS})
        self.started = self.clock()

    @property
    def elapsed(self) -> float:
        return self.clock() - self.started

    def wall_left(self) -> float:
        """Seconds to the deadline; raises LimitReached when there are none."""
        left = self.caps.wall_seconds - self.elapsed
        if left <= 0:
            raise LimitReached("wall_seconds")
        return left

    async def complete(
        self, owner: str, model: LanguageModel, request: ModelRequest, input_tokens: int
    ) -> ModelReply:
        """Ask a model; `input_tokens` is its own upper bound for the request.

        A call that failed or was cut off settles as one call; cut off, at its full reservation.
        """
        left = self.wall_left()
        held = {
            "model_calls": 1.0,
            "input_tokens": input_tokens,
            "output_tokens": request.max_output_tokens,
        }
        reservation = self.meter.reserve(owner, held)
        actual: dict[str, float] = dict(held)
        try:
            async with asyncio.timeout(left):
                reply = await model.complete(request)
            actual = _used(reply.spend)
        except TimeoutError:
            raise LimitReached("wall_seconds") from None
        except (ModelUnavailable, ModelRefused):
            actual = {"model_calls": 1.0}
            raise
        finally:
            self.meter.settle(reservation, actual)
        return reply

    def spend(self, owner: str | None = None) -> Spend:
        """What one owner used so far; all owners and the wall time without a name."""
        books = self.meter.spent
        picked = list(books.values()) if owner is None else [books.get(owner, {})]
        total = sum((_spend_of(book) for book in picked), Spend())
        return total.updated(wall_seconds=self.elapsed) if owner is None else total


@dataclass(frozen=True)
class MeteredSandbox:
    """A sandbox whose every run is reserved at its wall limit and settled at what it took."""

    sandbox: Sandbox
    allowance: Allowance
    owner: str

    @property
    def isolation(self) -> Isolation:
        return self.sandbox.isolation

    def run(self, execution: Execution) -> Completed:
        """Run within the caps; raises LimitReached before anything has started."""
        self.allowance.wall_left()
        held = {"sandbox_seconds": execution.limits.wall_seconds + KILL_GRACE_S}
        meter = self.allowance.meter
        reservation = meter.reserve(self.owner, held)
        begun = time.monotonic()
        actual: float | None = None
        try:
            done = self.sandbox.run(execution)
            actual = done.wall_seconds
        finally:
            if actual is None:
                actual = min(time.monotonic() - begun, held["sandbox_seconds"])
            meter.settle(reservation, {"sandbox_seconds": actual})
        return done


def _used(spend: Spend) -> dict[str, float]:
    return {
        "model_calls": float(max(spend.model_calls, 1)),
        "input_tokens": spend.input_tokens,
        "output_tokens": spend.output_tokens,
        "usd": spend.usd,
    }


def _spend_of(book: dict[str, float]) -> Spend:
    return Spend(
        model_calls=int(book.get("model_calls", 0)),
        input_tokens=int(book.get("input_tokens", 0)),
        output_tokens=int(book.get("output_tokens", 0)),
        sandbox_seconds=book.get("sandbox_seconds", 0.0),
        usd=book.get("usd", 0.0),
    )
