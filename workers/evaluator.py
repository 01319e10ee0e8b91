"""Evaluation that is paid once: every rollout is reserved, journaled, played and settled.

Events it records, all keyed by rollout id:
    dispatched  an attempt is about to start: what it is, its reservation, the run's seconds
    attempt     the attempt failed for the world's reasons: why, and what it is charged
    rollout     the answer, a Rollout without trajectories; the last event of a rollout
A `dispatched` without one of the other two was lost with its process, and is charged in full.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rsi.budget import Caps, Meter, Reservation, Spend
from rsi.errors import InfrastructureError, LimitReached
from rsi.ports import Isolation
from rsi.prism.task import Task
from rsi.records import Rollout, RolloutRequest
from workers.budgeting import Stopwatch, lost_of, reserved_for, used_by
from workers.journal import Entry
from workers.pool import Attempt, RolloutPool
from workers.store import RunStore

MAX_ATTEMPTS = 3
_POLL_S = 1.0


@dataclass(frozen=True)
class Terms:
    """What an evaluation is held to: caps, dollars a rollout can cost, seconds of the run.

    After the deadline nothing is dispatched, and what still runs `kill_grace_s` later is killed.
    """

    caps: Caps
    isolation: Isolation
    usd_per_rollout: float = 0.0
    wall_seconds: float | None = None
    kill_grace_s: float = 15.0


@dataclass
class _Call:
    """One call of `evaluate`: what is still to play, what is in flight, what is answered."""

    todo: deque[RolloutRequest]
    flying: dict[str, Reservation] = field(default_factory=dict)
    answers: dict[str, Rollout] = field(default_factory=dict)
    tried: Counter[str] = field(default_factory=Counter)


class JournaledEvaluator:
    """The Evaluator of evolution over a run's store, a pool and the run's meter.

    Answers carry their trajectories. A rollout that the world failed three times is answered
    with its `failure`. What earlier processes of the run spent is charged when this is made.
    """

    def __init__(
        self,
        store: RunStore,
        pool: RolloutPool,
        meter: Meter,
        terms: Terms,
        tasks: Mapping[str, Task],
        progress: Callable[[Rollout], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._pool = pool
        self._meter = meter
        self._terms = terms
        self._tasks = tasks
        self._progress = progress
        self._turn = threading.Lock()
        self._reserved = reserved_for(terms.caps, terms.usd_per_rollout)
        self.stopwatch = Stopwatch(terms.wall_seconds, _seconds_before(store))
        _charge_history(store, meter)

    def evaluate(self, requests: Sequence[RolloutRequest]) -> list[Rollout]:
        """Answer in request order, from the journal where it can; equal requests play once.

        Raises LimitReached naming the ceiling without room, after what was in flight is
        journaled; whatever else a rollout raises stops the call and cancels what is in flight.
        """
        with self._turn:
            call = _Call(deque())
            for rollout_id, request in {r.rollout_id: r for r in requests}.items():
                known = self._store.get("rollout", rollout_id)
                if known is None:
                    call.todo.append(request)
                else:
                    call.answers[rollout_id] = self._recorded(known)
            try:
                self._play(call)
            finally:
                self._give_up(call)
            return [call.answers[r.rollout_id] for r in requests]

    def _play(self, call: _Call) -> None:
        while call.todo or call.flying:
            limit = self._dispatch(call)
            if limit and not call.flying:
                raise LimitReached(limit)
            overdue_s = self.stopwatch.left_s + self._terms.kill_grace_s
            if overdue_s <= 0:
                raise LimitReached("wall_seconds")
            attempts = self._pool.collect(min(_POLL_S, overdue_s))
            bugs = [bug for attempt in attempts if (bug := self._settle(call, attempt))]
            if bugs:
                raise bugs[0]

    def _dispatch(self, call: _Call) -> str:
        """Submit what fits the window and the budget; name the ceiling that was in the way."""
        batch: list[RolloutRequest] = []
        entries: list[Entry] = []
        limit = ""
        while call.todo and len(call.flying) < self._pool.window and not limit:
            request = call.todo[0]
            try:
                reservation = self._reserve()
            except LimitReached as reached:
                limit = reached.limit
                break
            call.todo.popleft()
            call.flying[request.rollout_id] = reservation
            call.tried[request.rollout_id] += 1
            batch.append(request)
            entries.append(("dispatched", request.rollout_id, self._dispatched(request, call)))
        self._store.journal.append_all(entries)
        for request in batch:
            self._pool.submit(request)
        return limit

    def _reserve(self) -> Reservation:
        if self.stopwatch.left_s <= 0:
            raise LimitReached("wall_seconds")
        reservation = self._meter.reserve("rollouts", self._reserved)
        self.stopwatch.start()
        return reservation

    def _dispatched(self, request: RolloutRequest, call: _Call) -> dict[str, Any]:
        return {
            "strategyId": request.strategy.strategy_id,
            "taskId": request.task_id,
            "repetition": request.repetition,
            "scope": request.scope,
            "attempt": call.tried[request.rollout_id],
            "reserved": self._reserved,
            "elapsedSeconds": round(self.stopwatch.elapsed_s, 3),
        }

    def _settle(self, call: _Call, attempt: Attempt) -> BaseException | None:
        """Journal and book one attempt; return what must stop the call."""
        rollout_id = attempt.request.rollout_id
        result = attempt.result
        if isinstance(result, InfrastructureError):
            self._failed(call, attempt.request, self._unanswered(attempt.request, str(result)))
        elif isinstance(result, BaseException):
            return result
        elif result.failure:
            self._failed(call, attempt.request, result, used_by(result.spend))
        else:
            self._store.save_trajectories(rollout_id, result.trajectories)
            self._store.append("rollout", rollout_id, _journaled(result))
            used = {"rollouts": 1.0, **used_by(result.spend)}
            self._meter.settle(call.flying.pop(rollout_id), used)
            self._answer(call, result)
        return None

    def _failed(
        self,
        call: _Call,
        request: RolloutRequest,
        rollout: Rollout,
        used: Mapping[str, float] | None = None,
    ) -> None:
        """Book a failed attempt, at its reservation when nobody knows; try again or answer."""
        rollout_id = request.rollout_id
        charged = dict(used if used is not None else lost_of(self._reserved))
        owner = "rollouts" if used is not None else "lost"
        last = call.tried[rollout_id] >= MAX_ATTEMPTS
        record = {"failure": rollout.failure, "owner": owner, "charged": charged}
        entries: list[Entry] = [("attempt", rollout_id, record)]
        if last:
            self._store.save_trajectories(rollout_id, rollout.trajectories)
            entries.append(("rollout", rollout_id, _journaled(rollout)))
        self._store.journal.append_all(entries)
        self._book(call.flying.pop(rollout_id), owner, charged, counts=last)
        if last:
            self._answer(call, rollout)
        else:
            call.todo.appendleft(request)

    def _answer(self, call: _Call, rollout: Rollout) -> None:
        call.answers[rollout.rollout_id] = rollout
        self._progress(rollout)

    def _give_up(self, call: _Call) -> None:
        """After an error: cancel what is in flight and charge it as lost."""
        if not call.flying:
            return
        self._pool.cancel()
        for reservation in call.flying.values():
            self._book(reservation, "lost", lost_of(reservation.amounts), counts=False)
        call.flying.clear()

    def _book(
        self, held: Reservation, owner: str, charged: Mapping[str, float], counts: bool
    ) -> None:
        """Settle a failed attempt; it `counts` as a rollout when it was the last one."""
        place = {"rollouts": held.amounts["rollouts"]}
        # held and booked in one step, so that nobody sees room in between
        self._meter.settle(Reservation(owner, lost_of(held.amounts)), charged)
        whose = held.owner if counts else owner
        self._meter.settle(Reservation(whose, place), place if counts else {})

    def _recorded(self, known: Mapping[str, Any]) -> Rollout:
        rollout = Rollout.model_validate(known)
        kept = self._store.load_trajectories(rollout.rollout_id)
        return rollout.model_copy(update={"trajectories": kept})

    def _unanswered(self, request: RolloutRequest, failure: str) -> Rollout:
        task = self._tasks[request.task_id]
        return Rollout(
            rollout_id=request.rollout_id,
            strategy_id=request.strategy.strategy_id,
            task_id=request.task_id,
            family=task.family,
            source=task.source,
            scope=request.scope,
            outcome=None,
            failure=failure or "the world failed without a word",
            isolation=self._terms.isolation,
        )


def _journaled(rollout: Rollout) -> dict[str, Any]:
    values = rollout.to_json()
    del values["trajectories"]
    return values


def _charge_history(store: RunStore, meter: Meter) -> None:
    """Book what earlier processes of this run spent, lost attempts at their reservation."""
    unanswered: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    for event in store.events():
        if event.kind == "dispatched":
            unanswered[event.key].append(event.data["reserved"])
        elif event.kind == "attempt":
            del unanswered[event.key][-1:]
            meter.charge(event.data["owner"], event.data["charged"])
        elif event.kind == "rollout":
            meter.charge("rollouts", {"rollouts": 1.0})
            # the attempts of a failed rollout were booked one by one
            if not event.data["failure"]:
                del unanswered[event.key][-1:]
                meter.charge("rollouts", used_by(Spend.model_validate(event.data["spend"])))
    for reservations in unanswered.values():
        for reserved in reservations:
            meter.charge("lost", lost_of(reserved))


def _seconds_before(store: RunStore) -> float:
    """Working seconds of earlier processes, up to the last sign of life of a rollout."""
    elapsed = at = 0.0
    last = 0.0
    for event in store.events():
        if event.kind == "dispatched":
            elapsed, at = float(event.data["elapsedSeconds"]), event.time
            last = event.time
        elif event.kind in ("attempt", "rollout"):
            last = event.time
    return elapsed + max(0.0, last - at)
