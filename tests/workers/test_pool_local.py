"""Rollouts in threads: every result once, bounded, failures as data."""

from __future__ import annotations

import threading
import time

import pytest

from rsi.errors import ModelRefused, SandboxFailure, SettingsError
from rsi.records import Rollout, RolloutRequest
from tests.workers.rollouts import request, rollout
from workers.local_pool import LocalPool
from workers.pool import Attempt, RolloutPool


def collect(pool: RolloutPool, count: int) -> list[Attempt]:
    found: list[Attempt] = []
    give_up = time.monotonic() + 20
    while len(found) < count and time.monotonic() < give_up:
        found += pool.collect(timeout_s=1)
    return found


def test_every_submitted_rollout_is_answered_once_and_gets_the_spec() -> None:
    seen: list[object] = []

    def play(spec: str, asked: RolloutRequest) -> Rollout:
        seen.append(spec)
        return rollout(asked)

    with LocalPool(play, "spec", slots=3) as pool:
        for n in range(20):
            pool.submit(request(n))
        attempts = collect(pool, 20)
        assert pool.collect(timeout_s=0.05) == []
    assert seen == ["spec"] * 20
    assert sorted(a.request.task_id for a in attempts) == sorted(f"t{n}" for n in range(20))
    assert all(a.result == rollout(a.request) for a in attempts)


def test_no_more_than_the_slots_run_at_once_and_all_of_them_do() -> None:
    running, most = 0, 0
    lock = threading.Lock()

    def play(spec: None, asked: RolloutRequest) -> Rollout:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        return rollout(asked)

    with LocalPool(play, None, slots=3) as pool:
        assert pool.window == 3
        for n in range(12):
            pool.submit(request(n))
        assert len(collect(pool, 12)) == 12
    assert most == 3


def test_results_come_as_they_are_ready() -> None:
    gate = threading.Event()

    def play(spec: None, asked: RolloutRequest) -> Rollout:
        if asked.task_id == "t0":
            gate.wait(20)
        return rollout(asked)

    with LocalPool(play, None, slots=2) as pool:
        pool.submit(request(0))
        pool.submit(request(1))
        assert [a.request.task_id for a in collect(pool, 1)] == ["t1"]
        gate.set()
        assert [a.request.task_id for a in collect(pool, 1)] == ["t0"]


@pytest.mark.parametrize("error", [SandboxFailure("no"), ModelRefused("key"), ValueError("bug")])
def test_what_a_rollout_raised_is_told_beside_the_results_of_others(error: Exception) -> None:
    def play(spec: None, asked: RolloutRequest) -> Rollout:
        if asked.task_id == "t0":
            raise error
        return rollout(asked)

    with LocalPool(play, None, slots=1) as pool:
        pool.submit(request(0))
        pool.submit(request(1))
        results = {a.request.task_id: a.result for a in collect(pool, 2)}
    assert results["t0"] is error
    assert results["t1"] == rollout(request(1))


def test_cancel_returns_at_once_drops_results_and_starts_nothing_more() -> None:
    gate = threading.Event()
    played: list[str] = []

    def play(spec: None, asked: RolloutRequest) -> Rollout:
        played.append(asked.task_id)
        gate.wait(20)
        return rollout(asked)

    with LocalPool(play, None, slots=1) as pool:
        pool.submit(request(0))
        pool.submit(request(1))
        while not played:
            time.sleep(0.001)
        start = time.monotonic()
        pool.cancel()
        assert time.monotonic() - start < 1
        gate.set()
        pool.submit(request(2))
        assert [a.request.task_id for a in collect(pool, 1)] == ["t2"]
        assert pool.collect(timeout_s=0.05) == []
    assert len(played) == 2


def test_collecting_waits_no_longer_than_asked() -> None:
    with LocalPool(lambda spec, asked: rollout(asked), None, slots=1) as pool:
        start = time.monotonic()
        assert pool.collect(timeout_s=0.05) == []
        assert 0.04 < time.monotonic() - start < 2


def test_a_pool_needs_a_slot() -> None:
    with pytest.raises(SettingsError, match="slots=0"):
        LocalPool(lambda spec, asked: rollout(asked), None, slots=0)
