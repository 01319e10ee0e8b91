"""The evaluator against pools that misbehave, and against kill -9."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rsi.budget import Budget, Caps
from rsi.errors import LimitReached, ModelRefused, WorkerLost
from rsi.records import RolloutRequest
from tests.builders import task
from tests.workers.rollouts import play_by_name, request, rollout
from workers.budgeting import meter_of
from workers.evaluator import JournaledEvaluator, Terms
from workers.local_pool import LocalPool
from workers.pool import Attempt, RolloutPool
from workers.store import RunStore

TERMS = Terms(caps=Caps(input_tokens=1_000, output_tokens=200), isolation="process")


class ScriptedPool:
    """A pool of one process that answers the latest first and remembers what was asked of it."""

    def __init__(self, window: int, results: dict[str, list[Any]] | None = None) -> None:
        self.window = window
        self.results = results or {}
        self.flying: list[RolloutRequest] = []
        self.submitted: list[str] = []
        self.most = 0
        self.cancelled = 0

    def submit(self, request: RolloutRequest) -> None:
        self.submitted.append(request.task_id)
        self.flying.append(request)
        self.most = max(self.most, len(self.flying))

    def collect(self, timeout_s: float) -> list[Attempt]:
        assert self.flying, "nothing to wait for"
        asked = self.flying.pop()
        script = self.results.get(asked.task_id)
        return [Attempt(asked, script.pop(0) if script else rollout(asked))]

    def cancel(self) -> None:
        self.cancelled += 1
        self.flying.clear()


def evaluator(
    store: RunStore, pool: RolloutPool, budget: Budget | None = None
) -> JournaledEvaluator:
    tasks = {f"t{n}": task(f"t{n}") for n in range(20)}
    return JournaledEvaluator(store, pool, meter_of(budget or Budget(rollouts=99)), TERMS, tasks)


def test_the_window_is_filled_and_never_passed(tmp_path: Path) -> None:
    pool = ScriptedPool(window=3)
    with RunStore.create_or_resume(tmp_path, "run", {}) as store:
        answers = evaluator(store, pool).evaluate([request(n) for n in range(10)])
    assert pool.most == 3
    assert [a.task_id for a in answers] == [f"t{n}" for n in range(10)]
    assert sorted(pool.submitted) == sorted(f"t{n}" for n in range(10))
    assert pool.cancelled == 0


def test_a_failed_attempt_is_repeated_before_anything_new_is_started(tmp_path: Path) -> None:
    pool = ScriptedPool(window=1, results={"t0": [WorkerLost("gone"), WorkerLost("gone")]})
    with RunStore.create_or_resume(tmp_path, "run", {}) as store:
        evaluator(store, pool).evaluate([request(0), request(1)])
    assert pool.submitted == ["t0", "t0", "t0", "t1"]


def test_a_refusal_cancels_what_is_in_flight_and_the_next_call_starts_clean(
    tmp_path: Path,
) -> None:
    pool = ScriptedPool(window=4, results={"t3": [ModelRefused("wrong key")]})
    with RunStore.create_or_resume(tmp_path, "run", {}) as store:
        judge = evaluator(store, pool)
        with pytest.raises(ModelRefused):
            judge.evaluate([request(n) for n in range(4)])
        assert pool.cancelled == 1
        assert len(judge.evaluate([request(n) for n in range(4)])) == 4
        assert len(store.events("dispatched")) == 8


def test_what_finished_beside_a_refusal_is_kept(tmp_path: Path) -> None:
    class Both(ScriptedPool):
        def collect(self, timeout_s: float) -> list[Attempt]:
            return [a for _ in list(self.flying) for a in super(Both, self).collect(timeout_s)]

    pool = Both(window=2, results={"t1": [ModelRefused("wrong key")]})
    with RunStore.create_or_resume(tmp_path, "run", {}) as store:
        with pytest.raises(ModelRefused):
            evaluator(store, pool).evaluate([request(0), request(1)])
        assert store.get("rollout", request(0).rollout_id) is not None


def test_an_interrupt_cancels_and_is_passed_on(tmp_path: Path) -> None:
    class Interrupted(ScriptedPool):
        def collect(self, timeout_s: float) -> list[Attempt]:
            raise KeyboardInterrupt

    pool = Interrupted(window=2)
    with (
        RunStore.create_or_resume(tmp_path, "run", {}) as store,
        pytest.raises(KeyboardInterrupt),
    ):
        evaluator(store, pool).evaluate([request(0)])
    assert pool.cancelled == 1


def test_trajectories_are_on_disk_before_the_rollout_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    with RunStore.create_or_resume(tmp_path, "run", {}) as store:
        append_all = store.journal.append_all

        def watched(entries: Any) -> Any:
            seen.extend(
                bool(store.load_trajectories(key)) for kind, key, _ in entries if kind == "rollout"
            )
            return append_all(entries)

        monkeypatch.setattr(store.journal, "append_all", watched)
        failing = [rollout(request(1), failure="down") for _ in range(3)]
        pool = ScriptedPool(window=1, results={"t1": list(failing)})
        evaluator(store, pool).evaluate([request(0), request(1)])
    assert seen == [True, True]


def test_a_budget_that_ends_between_attempts_stops_without_an_answer(tmp_path: Path) -> None:
    pool = ScriptedPool(window=1, results={"t0": [WorkerLost("gone")]})
    budget = Budget(rollouts=5, tokens=2_000)
    with RunStore.create_or_resume(tmp_path, "run", {}) as store:
        with pytest.raises(LimitReached, match="tokens"):
            evaluator(store, pool, budget).evaluate([request(0)])
        assert store.get("rollout", request(0).rollout_id) is None
    assert pool.submitted == ["t0"]


KILLED = """
import sys
from pathlib import Path
from tests.workers.rollouts import play_by_name, request
from tests.workers.test_pool_resume import evaluator
from workers.local_pool import LocalPool
from workers.store import RunStore

folder = Path(sys.argv[1])
store = RunStore.create_or_resume(folder, "run", {})
pool = LocalPool(play_by_name, folder, 2)
evaluator(store, pool).evaluate([request(n, "short") for n in range(12)])
"""


def test_after_kill_9_finished_rollouts_are_not_played_again_and_none_is_missing(
    tmp_path: Path,
) -> None:
    run = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)])
    give_up = time.monotonic() + 60
    while not (tmp_path / "t6").exists():
        assert time.monotonic() < give_up and run.poll() is None
        time.sleep(0.01)
    run.kill()
    run.wait()
    asked = [request(n, "short") for n in range(12)]
    with RunStore.create_or_resume(tmp_path, "run", {}) as store:
        finished = {e.key for e in store.events("rollout")}
        sent = [e.key for e in store.events("dispatched")]
        lost = [key for key in sent if key not in finished]
        assert finished and 1 <= len(lost) <= 2
        pool = LocalPool(play_by_name, tmp_path, 4)
        judge = evaluator(store, pool)
        assert judge.evaluate(asked) == [rollout(r) for r in asked]
        assert judge._meter.total("rollouts") == 12
        assert judge._meter.spent["lost"]["tokens"] == 1_200 * len(lost)
    for one in asked:
        executions = len((tmp_path / one.task_id).read_text().split())
        # what was dispatched when the process died may not have started there
        assert executions in ((1, 2) if one.rollout_id in lost else (1,))
