"""Rollouts in one process share their tools, however many threads ask for them at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from rsi.budget import Caps
from rsi.records import RolloutRequest, Workflow
from rsi.strategy import Strategy
from workers import play
from workers.benchmark import BenchmarkSettings, open_benchmark
from workers.llm import ModelProfile


def test_threads_that_start_together_share_one_loop_and_one_corpus():
    spec = play.PlaySpec(
        benchmark=BenchmarkSettings(),
        models=(ModelProfile(name="builtin", model="builtin/coder"),),
        sandbox="process",
        caps=Caps(model_calls=3),
        workflow=Workflow(agents=1, challenge=False, cross_validation=False, verify_runs=1),
    )
    open_benchmark.cache_clear()
    play._loop.cache_clear()
    task_id = open_benchmark(spec.benchmark).split("train")[0].task_id
    requests = [
        RolloutRequest(strategy=Strategy(), task_id=task_id, repetition=f"r{i}") for i in range(4)
    ]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda request: play.play_rollout(spec, request), requests))
    assert [r.rollout_id for r in found] == [r.rollout_id for r in requests]
    assert all(r.spend.model_calls == 3 and r.isolation == "process" for r in found)
    assert play._loop.cache_info().misses == 1
    assert sum(thread.name == "rollouts" for thread in threading.enumerate()) == 1
