"""Evaluation is paid once and never past the budget, whatever dies in between."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsi.budget import Budget, Caps, Meter
from rsi.errors import LimitReached, ModelRefused, SandboxFailure, UserError, WorkerLost
from rsi.prism.task import Task
from rsi.records import Rollout, RolloutRequest
from tests.builders import task
from tests.workers.rollouts import request, rollout
from workers.budgeting import Stopwatch, meter_of, reserved_for
from workers.evaluator import JournaledEvaluator, Terms
from workers.local_pool import LocalPool
from workers.store import RunStore

CAPS = Caps(input_tokens=1_000, output_tokens=200)
TASKS: dict[str, Task] = {f"t{n}": task(f"t{n}") for n in range(30)}
Playing = Callable[[None, RolloutRequest], Rollout]


class Bench:
    """A run directory, a meter and a pool that counts what it plays."""

    def __init__(
        self,
        folder: Path,
        play: Callable[[RolloutRequest], Rollout] = rollout,
        slots: int = 2,
        budget: Budget | None = None,
        **terms: Any,
    ) -> None:
        self.played: Counter[str] = Counter()
        self.done: list[str] = []
        self.play = play
        self.store = RunStore.create_or_resume(folder, "run", {})
        self.meter = meter_of(budget or Budget(rollouts=1_000))
        self.pool = LocalPool(self._play, None, slots)
        self.evaluator = JournaledEvaluator(
            self.store,
            self.pool,
            self.meter,
            Terms(caps=CAPS, isolation="process", **terms),
            TASKS,
            lambda finished: self.done.append(finished.task_id),
        )

    def _play(self, spec: None, asked: RolloutRequest) -> Rollout:
        self.played[asked.task_id] += 1
        return self.play(asked)

    def evaluate(self, *numbers: int) -> list[Rollout]:
        return self.evaluator.evaluate([request(n) for n in numbers])

    def kinds(self) -> list[str]:
        return [e.kind for e in self.store.events()]

    def close(self) -> None:
        self.pool.cancel()
        self.store.close()


def spent(meter: Meter) -> dict[str, float]:
    return {name: meter.total(name) for name in ("rollouts", "tokens", "usd")}


def test_answers_come_in_request_order_and_with_trajectories(tmp_path: Path) -> None:
    def play(asked: RolloutRequest) -> Rollout:
        time.sleep(0.03 if asked.task_id == "t5" else 0)
        return rollout(asked)

    bench = Bench(tmp_path, play, slots=4)
    answers = bench.evaluate(5, 1, 4, 2, 3)
    assert [a.task_id for a in answers] == ["t5", "t1", "t4", "t2", "t3"]
    assert answers == [rollout(request(n)) for n in (5, 1, 4, 2, 3)]
    assert sorted(bench.done) == ["t1", "t2", "t3", "t4", "t5"]
    bench.close()


def test_equal_requests_are_played_once_in_a_call_across_calls_and_across_starts(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    first = bench.evaluate(1, 2, 1, 1)
    assert bench.played == {"t1": 1, "t2": 1}
    assert bench.evaluate(2, 1) == [first[1], first[0]]
    assert bench.played == {"t1": 1, "t2": 1}
    bench.close()
    again = Bench(tmp_path)
    assert again.evaluate(1, 2, 1, 1) == first
    assert again.played == {} and again.done == []
    assert spent(again.meter) == spent(bench.meter) == {"rollouts": 2, "tokens": 200, "usd": 0}
    again.close()


def test_other_repetitions_strategies_and_scopes_are_other_rollouts(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    asked = [request(1), request(1, "1"), request(1, max_rounds=2)]
    asked.append(request(1).updated(scope="full"))
    assert [a.rollout_id for a in bench.evaluator.evaluate(asked)] == [r.rollout_id for r in asked]
    assert bench.played == {"t1": 4}
    bench.close()


def test_an_attempt_is_journaled_before_it_starts_and_its_answer_before_it_counts(
    tmp_path: Path,
) -> None:
    def play(asked: RolloutRequest) -> Rollout:
        assert bench.store.get("dispatched", asked.rollout_id) is not None
        assert bench.store.get("rollout", asked.rollout_id) is None
        return rollout(asked, tokens=70)

    bench = Bench(tmp_path, play, usd_per_rollout=0.5)
    bench.evaluate(3)
    assert bench.kinds() == ["dispatched", "rollout"]
    sent = bench.store.get("dispatched", request(3).rollout_id)
    assert sent is not None and sent.pop("elapsedSeconds") >= 0
    assert sent == {
        "strategyId": request(3).strategy.strategy_id,
        "taskId": "t3",
        "repetition": "0",
        "scope": "signal",
        "attempt": 1,
        "reserved": {"rollouts": 1.0, "tokens": 1_200.0, "usd": 0.5},
    }
    kept = bench.store.get("rollout", request(3).rollout_id)
    assert kept is not None and "trajectories" not in kept
    assert Rollout.model_validate(kept) == rollout(request(3), 70).updated(trajectories=())
    assert bench.store.load_trajectories(request(3).rollout_id)[0].steps[0].said == "t3"
    assert bench.meter.spent == {"rollouts": {"rollouts": 1, "tokens": 70, "usd": 0}}
    bench.close()


def test_a_full_window_is_used_and_never_more(tmp_path: Path) -> None:
    running, most = 0, 0
    lock = threading.Lock()

    def play(asked: RolloutRequest) -> Rollout:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return rollout(asked)

    bench = Bench(tmp_path, play, slots=3)
    bench.evaluate(*range(12))
    assert most == 3
    bench.close()


def test_the_rollout_ceiling_is_reached_exactly_and_the_answers_are_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path, slots=4, budget=Budget(rollouts=5))
    with pytest.raises(LimitReached) as caught:
        bench.evaluate(*range(9))
    assert caught.value.limit == "rollouts"
    assert bench.played.total() == 5
    assert bench.kinds().count("rollout") == 5
    assert spent(bench.meter)["rollouts"] == 5
    # what is answered costs nothing, also without any room
    assert len(bench.evaluate(*range(5))) == 5
    bench.close()


def test_a_tight_token_budget_waits_for_what_is_in_flight_instead_of_stopping(
    tmp_path: Path,
) -> None:
    # room for one reservation of 1,200 at a time, while each rollout really uses 100
    bench = Bench(tmp_path, slots=4, budget=Budget(rollouts=100, tokens=1_500))
    assert len(bench.evaluate(0, 1, 2, 3)) == 4
    assert spent(bench.meter)["tokens"] == 400
    with pytest.raises(LimitReached, match="tokens"):
        bench.evaluate(4)
    assert bench.played.total() == 4
    bench.close()


def test_dollars_are_reserved_at_their_upper_bound(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path,
        lambda asked: rollout(asked, usd=0.25),
        budget=Budget(rollouts=100, usd=1.0),
        usd_per_rollout=0.5,
    )
    with pytest.raises(LimitReached, match="usd"):
        bench.evaluate(*range(9))
    assert spent(bench.meter) == {"rollouts": 3, "tokens": 300, "usd": 0.75}
    bench.close()


@settings(max_examples=15, deadline=None)
@given(
    slots=st.integers(1, 6),
    ceiling=st.integers(1_000, 20_000),
    rollouts=st.integers(1, 20),
    seed=st.integers(0, 99),
)
def test_no_ceiling_is_ever_passed_with_any_number_of_slots(
    tmp_path_factory: pytest.TempPathFactory, slots: int, ceiling: int, rollouts: int, seed: int
) -> None:
    def play(asked: RolloutRequest) -> Rollout:
        dice = random.Random(f"{seed}{asked.task_id}")
        time.sleep(dice.random() / 500)
        if dice.random() < 0.2:
            raise WorkerLost("gone")
        return rollout(asked, tokens=dice.choice([1, 600, 1_200]))

    budget = Budget(rollouts=rollouts, tokens=ceiling)
    bench = Bench(tmp_path_factory.mktemp("run"), play, slots, budget)
    try:
        bench.evaluate(*range(20))
    except LimitReached as reached:
        assert reached.limit in ("rollouts", "tokens")
    total = spent(bench.meter)
    assert total["tokens"] <= ceiling and total["rollouts"] <= rollouts
    assert bench.meter.room("tokens") == ceiling - total["tokens"], "nothing stays reserved"
    bench.close()
    # the next start finds the same books
    again = Bench(bench.store.folder.parent, play, slots, budget)
    assert again.meter.spent == bench.meter.spent
    again.close()


def test_a_rollout_failed_by_the_world_is_tried_three_times_and_each_try_is_charged(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, lambda asked: rollout(asked, tokens=50, failure="endpoint down"))
    (answer,) = bench.evaluate(1)
    assert answer.failure == "endpoint down" and answer.outcome is None
    assert bench.played == {"t1": 3} and bench.done == ["t1"]
    assert bench.kinds() == ["dispatched", "attempt"] * 3 + ["rollout"]
    assert [e.data["attempt"] for e in bench.store.events("dispatched")] == [1, 2, 3]
    assert spent(bench.meter) == {"rollouts": 1, "tokens": 150, "usd": 0}
    bench.close()
    again = Bench(tmp_path)
    assert again.meter.spent == bench.meter.spent
    assert again.evaluate(1) == [answer] and again.played == {}
    again.close()


def test_a_failure_that_passes_leaves_only_the_good_rollout(tmp_path: Path) -> None:
    def play(asked: RolloutRequest) -> Rollout:
        if bench.played["t1"] < 3:
            raise SandboxFailure("busy")
        return rollout(asked)

    bench = Bench(tmp_path, play, usd_per_rollout=2.0)
    (answer,) = bench.evaluate(1)
    assert answer == rollout(request(1))
    attempts = [e.data for e in bench.store.events("attempt")]
    lost = {"failure": "busy", "owner": "lost", "charged": {"tokens": 1_200, "usd": 2}}
    assert attempts == [lost, lost]
    # nobody knows what the two lost tries used, so they cost all they had reserved
    assert bench.meter.spent == {
        "lost": {"tokens": 2_400, "usd": 4},
        "rollouts": {"rollouts": 1, "tokens": 100, "usd": 0},
    }
    bench.close()
    again = Bench(tmp_path)
    assert again.meter.spent == bench.meter.spent
    again.close()


def test_a_worker_lost_three_times_is_a_failed_rollout_not_a_missing_one(tmp_path: Path) -> None:
    def play(asked: RolloutRequest) -> Rollout:
        if asked.task_id == "t1":
            raise WorkerLost("worker lost: killed")
        return rollout(asked)

    bench = Bench(tmp_path, play)
    bad, good = bench.evaluate(1, 2)
    assert good == rollout(request(2))
    assert bad.failure == "worker lost: killed" and bad.task_id == "t1" and bad.rar is None
    assert (bad.family, bad.source, bad.isolation) == ("made", "made", "process")
    assert bad.rollout_id == request(1).rollout_id
    assert bench.meter.spent["lost"] == {"tokens": 3_600, "usd": 0}
    assert bench.meter.total("rollouts") == 2
    bench.close()


def test_what_was_in_flight_at_a_kill_is_charged_in_full_and_played_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, usd_per_rollout=1.0)
    bench.evaluate(0)
    lines = (tmp_path / "run/events.jsonl").read_bytes().splitlines(keepends=True)
    bench.evaluate(1, 2)
    bench.close()
    # as if killed after the dispatch of 1 and 2
    sent = (tmp_path / "run/events.jsonl").read_bytes().splitlines(keepends=True)[:4]
    assert sent[:2] == lines
    (tmp_path / "run/events.jsonl").write_bytes(b"".join(sent))

    again = Bench(tmp_path, usd_per_rollout=1.0)
    assert again.meter.spent == {
        "rollouts": {"rollouts": 1, "tokens": 100, "usd": 0},
        "lost": {"tokens": 2_400, "usd": 2},
    }
    assert [a.task_id for a in again.evaluate(0, 1, 2)] == ["t0", "t1", "t2"]
    assert again.played == {"t1": 1, "t2": 1}
    assert spent(again.meter) == {"rollouts": 3, "tokens": 2_700, "usd": 2}
    again.close()
    third = Bench(tmp_path)
    assert spent(third.meter) == spent(again.meter)
    third.close()


@pytest.mark.parametrize("error", [ModelRefused("wrong key"), ValueError("a bug")])
def test_a_refusal_or_bug_stops_the_call_but_keeps_what_was_finished(
    tmp_path: Path, error: Exception
) -> None:
    both = threading.Barrier(2)

    def play(asked: RolloutRequest) -> Rollout:
        both.wait(20)
        if asked.task_id == "t0":
            raise error
        return rollout(asked)

    bench = Bench(tmp_path, play, slots=2)
    with pytest.raises(type(error), match=str(error)):
        bench.evaluate(0, 1, 2, 3)
    assert bench.played.total() <= 4
    assert bench.store.get("rollout", request(0).rollout_id) is None
    assert bench.meter.room("rollouts") == 1_000 - bench.meter.total("rollouts")
    assert bench.meter.spent["lost"]["tokens"] >= 1_200
    assert bench.store.get("attempt", request(0).rollout_id) is None
    bench.close()


def test_after_the_deadline_nothing_is_dispatched(tmp_path: Path) -> None:
    bench = Bench(tmp_path, slots=1, wall_seconds=100.0)
    now = 1_000.0
    bench.evaluator.stopwatch.now = lambda: now
    bench.evaluate(0)
    now += 99.9
    bench.evaluate(1)
    now += 0.1
    with pytest.raises(LimitReached, match="wall_seconds"):
        bench.evaluate(0, 1, 2)
    assert bench.played == {"t0": 1, "t1": 1}
    assert [a.task_id for a in bench.evaluate(0, 1)] == ["t0", "t1"]
    bench.close()


def test_what_runs_past_the_deadline_and_its_grace_is_killed_and_charged(tmp_path: Path) -> None:
    gate = threading.Event()

    def play(asked: RolloutRequest) -> Rollout:
        gate.wait(30)
        return rollout(asked)

    bench = Bench(tmp_path, play, slots=2, wall_seconds=0.2, kill_grace_s=0.2)
    start = time.monotonic()
    with pytest.raises(LimitReached, match="wall_seconds"):
        bench.evaluate(0, 1, 2)
    assert 0.35 < time.monotonic() - start < 5
    gate.set()
    assert bench.played.total() == 2 and bench.kinds() == ["dispatched", "dispatched"]
    assert bench.meter.spent == {"lost": {"tokens": 2_400, "usd": 0}}
    assert bench.meter.room("rollouts") == 1_000
    bench.close()


def test_a_rollout_that_ends_within_the_grace_is_kept(tmp_path: Path) -> None:
    def play(asked: RolloutRequest) -> Rollout:
        time.sleep(0.3)
        return rollout(asked)

    bench = Bench(tmp_path, play, slots=1, wall_seconds=0.1, kill_grace_s=20.0)
    with pytest.raises(LimitReached, match="wall_seconds"):
        bench.evaluate(0, 1)
    assert bench.kinds() == ["dispatched", "rollout"]
    bench.close()


def test_working_time_goes_on_across_starts_but_not_in_between(tmp_path: Path) -> None:
    bench = Bench(tmp_path, slots=1, wall_seconds=100.0)
    now = 50.0
    bench.evaluator.stopwatch.now = lambda: now
    bench.evaluate(0)
    now += 60.0
    bench.evaluate(1)
    bench.close()
    again = Bench(tmp_path, wall_seconds=100.0)
    assert 60 <= again.evaluator.stopwatch.elapsed_s < 62
    assert 38 < again.evaluator.stopwatch.left_s <= 40
    again.close()


def test_working_time_counts_to_the_last_sign_of_life_of_a_rollout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at(seconds: float, kind: str, **told: float) -> None:
        monkeypatch.setattr("time.time", lambda: seconds)
        store.append(kind, "r", {"reserved": {"tokens": 1.0}, "failure": "x", **told})

    with RunStore.create_or_resume(tmp_path, "run", {}) as store:
        at(1_000, "run_started")
        at(1_010, "dispatched", elapsedSeconds=3.0)
        at(1_500, "dispatched", elapsedSeconds=20.0)
        at(1_512, "rollout")
        at(9_999, "winner")
    monkeypatch.undo()
    again = Bench(tmp_path, wall_seconds=100.0)
    assert again.evaluator.stopwatch.elapsed_s == 32
    again.close()


def test_a_stopwatch_starts_once_and_without_ceiling_never_ends() -> None:
    now = 10.0
    watch = Stopwatch(30.0, before_s=5.0, now=lambda: now)
    now += 100
    assert watch.left_s == 25
    watch.start()
    now += 7
    watch.start()
    assert watch.elapsed_s == 12 and watch.left_s == 18
    assert Stopwatch(None).left_s == float("inf")


def test_a_full_disk_stops_the_run_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)

    def refuse(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(UserError, match="No space left on device"):
        bench.evaluate(0)
    assert bench.played == {}
    assert bench.meter.room("rollouts") == 1_000
    monkeypatch.undo()
    bench.close()


def test_a_meter_has_only_the_ceilings_of_its_budget() -> None:
    assert meter_of(Budget(rollouts=7)).limits == {"rollouts": 7}
    full = meter_of(Budget(rollouts=7, tokens=2_000, usd=0.0))
    assert full.limits == {"rollouts": 7, "tokens": 2_000, "usd": 0}
    assert reserved_for(CAPS, 0.1) == {"rollouts": 1, "tokens": 1_200, "usd": 0.1}
