"""Rollouts on Ray: one cluster of our own for the whole module."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rsi.budget import Budget, Caps
from rsi.errors import ModelRefused, SandboxFailure, SettingsError, WorkerLost
from tests.builders import task
from tests.workers.rollouts import play_by_name, request, rollout
from workers.budgeting import meter_of
from workers.evaluator import JournaledEvaluator, Terms
from workers.journal import read_events
from workers.pool import Attempt, RayPool
from workers.store import RunStore

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture(scope="module")
def marks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("marks")


@pytest.fixture(scope="module")
def pool(marks: Path) -> Iterator[RayPool]:
    with RayPool(play_by_name, marks, slots=2, in_flight=4) as started:
        yield started


def collect(pool: RayPool, count: int) -> list[Attempt]:
    found: list[Attempt] = []
    give_up = time.monotonic() + 60
    while len(found) < count and time.monotonic() < give_up:
        found += pool.collect(timeout_s=5)
    return found


def executions(marks: Path, task_id: str) -> int:
    return len((marks / task_id).read_text().split())


def test_every_rollout_is_answered_once_from_other_processes(pool: RayPool, marks: Path) -> None:
    for n in range(100, 112):
        pool.submit(request(n))
    attempts = collect(pool, 12)
    assert {a.request.task_id for a in attempts} == {f"t{n}" for n in range(100, 112)}
    assert all(a.result == rollout(a.request) for a in attempts)
    assert pool.collect(timeout_s=0.1) == []
    assert pool.window == 4
    assert str(os.getpid()) not in (marks / "t100").read_text()


def test_a_killed_worker_is_told_and_not_silently_run_again(pool: RayPool, marks: Path) -> None:
    pool.submit(request(200, "die"))
    (attempt,) = collect(pool, 1)
    assert isinstance(attempt.result, WorkerLost)
    assert "\n" not in str(attempt.result)
    assert executions(marks, "t200") == 1


@pytest.mark.parametrize(
    ("what", "raised", "text"),
    [
        ("sandbox", SandboxFailure, "no namespace"),
        ("refused", ModelRefused, "wrong key"),
        ("bug", ValueError, "a bug"),
    ],
)
def test_what_a_rollout_raised_arrives_as_it_was(
    pool: RayPool, marks: Path, what: str, raised: type[Exception], text: str
) -> None:
    pool.submit(request(300, what))
    (attempt,) = collect(pool, 1)
    assert isinstance(attempt.result, raised)
    assert text in str(attempt.result)


def test_a_kill_costs_an_attempt_not_a_result(pool: RayPool, marks: Path, tmp_path: Path) -> None:
    caps = Caps(input_tokens=1_000, output_tokens=200)
    meter = meter_of(Budget(rollouts=6, tokens=20_000))
    asked = [request(n, "die-once" if n == 402 else "0") for n in range(400, 406)]
    with RunStore.create_or_resume(tmp_path, "run", {}) as store:
        evaluator = JournaledEvaluator(
            store,
            pool,
            meter,
            Terms(caps=caps, isolation="process"),
            {r.task_id: task(r.task_id) for r in asked},
        )
        assert evaluator.evaluate(asked) == [rollout(r) for r in asked]
        assert len(store.events("attempt")) == 1
        assert len(store.events("rollout")) == 6
    assert [executions(marks, r.task_id) for r in asked] == [1, 1, 2, 1, 1, 1]
    assert meter.total("rollouts") == 6
    assert meter.spent["lost"] == {"tokens": 1_200, "usd": 0}


def test_cancel_stops_what_runs_within_seconds_and_the_pool_goes_on(
    pool: RayPool, marks: Path
) -> None:
    for n in (500, 501, 502):
        pool.submit(request(n, "slow"))
    give_up = time.monotonic() + 30
    while not (marks / "t500").exists() and time.monotonic() < give_up:
        time.sleep(0.05)
    pids = [int(line) for line in (marks / "t500").read_text().split()]
    start = time.monotonic()
    pool.cancel()
    assert time.monotonic() - start < 8
    assert pool.collect(timeout_s=0.1) == []
    start = time.monotonic()
    pool.submit(request(503))
    assert [a.result for a in collect(pool, 1)] == [rollout(request(503))]
    assert time.monotonic() - start < 30
    assert pids and not (marks / "t502").exists()


def test_a_process_is_in_one_cluster_at_a_time(pool: RayPool, marks: Path) -> None:
    with pytest.raises(SettingsError, match="already in a Ray cluster"):
        RayPool(play_by_name, marks, slots=1, in_flight=1)


def test_the_cluster_is_our_own_and_asks_strangers_for_a_secret(pool: RayPool) -> None:
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert len(os.environ["RAY_AUTH_TOKEN"]) >= 32
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


@pytest.mark.parametrize("address", ["auto", "", "host", "host:", ":6379", "host:99999", "h:x"])
def test_an_address_that_is_none_is_refused(marks: Path, address: str) -> None:
    with pytest.raises(SettingsError, match=r"use local or HOST:PORT"):
        RayPool(play_by_name, marks, slots=1, in_flight=1, address=address)


def test_a_cluster_that_does_not_answer_is_one_line_at_once(marks: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        start = time.monotonic()
        with pytest.raises(SettingsError) as caught:
            RayPool(play_by_name, marks, slots=1, in_flight=1, address=f"127.0.0.1:{port}")
    assert time.monotonic() - start < 5
    assert f"cluster.address=127.0.0.1:{port}: nobody answers" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("slots", "in_flight"), [(0, 1), (1, 0)])
def test_a_pool_needs_slots_and_a_window(marks: Path, slots: int, in_flight: int) -> None:
    with pytest.raises(SettingsError, match="must be >= 1"):
        RayPool(play_by_name, marks, slots=slots, in_flight=in_flight)


INTERRUPTED = """
import sys
from pathlib import Path
from rsi.budget import Budget, Caps
from tests.workers.rollouts import play_by_name, request
from workers.budgeting import meter_of
from workers.evaluator import JournaledEvaluator, Terms
from workers.pool import RayPool
from workers.store import RunStore

folder = Path(sys.argv[1])
with (
    RayPool(play_by_name, folder, slots=1, in_flight=2) as pool,
    RunStore.create_or_resume(folder, "run", {}) as store,
):
    terms = Terms(caps=Caps(), isolation="process")
    evaluator = JournaledEvaluator(store, pool, meter_of(Budget(rollouts=9)), terms, {})
    evaluator.evaluate([request(n, "slow") for n in range(3)])
"""


@pytest.mark.slow
def test_ctrl_c_ends_a_run_within_seconds_and_leaves_no_process(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    run = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)],
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    with run:
        give_up = time.monotonic() + 120
        while not (tmp_path / "t0").exists() and run.poll() is None:
            assert time.monotonic() < give_up
            time.sleep(0.1)
        worker = int((tmp_path / "t0").read_text())
        others = psutil.Process(run.pid).children(recursive=True)
        run.send_signal(signal.SIGINT)
        start = time.monotonic()
        _, errors = run.communicate(timeout=60)
        assert time.monotonic() - start < 30
    assert b"KeyboardInterrupt" in errors
    assert worker in {process.pid for process in others}
    _, alive = psutil.wait_procs(others, timeout=20)
    assert alive == []
    assert [e.kind for e in read_events(tmp_path / "run/events.jsonl")] == ["dispatched"] * 2
