"""Plays one rollout in whatever process it is called: opens its tools once and reuses them."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import threading
from collections.abc import Sequence

from rsi.budget import Caps
from rsi.ports import Isolation, LanguageModel, Sandbox
from rsi.records import Rollout, RolloutRequest, Workflow
from rsi.rollout import run_rollout
from rsi.wire import Record
from workers.benchmark import BenchmarkSettings, open_benchmark
from workers.llm import LiteLLMModel, ModelProfile
from workers.sandbox import open_sandbox

# caches do not keep two threads from opening the same tool twice
_OPENING = threading.Lock()
# how long pending work may take to end with the process
END_S = 2.0


class PlaySpec(Record):
    """All that a worker process needs to play any rollout of a run."""

    benchmark: BenchmarkSettings
    models: tuple[ModelProfile, ...]
    sandbox: Isolation
    caps: Caps
    workflow: Workflow
    seed: int = 0


def play_rollout(spec: PlaySpec, request: RolloutRequest) -> Rollout:
    """Play one request to its end and give the judged rollout; blocks its thread."""
    with _OPENING:
        benchmark = open_benchmark(spec.benchmark)
        models, sandbox, loop = _models(spec.models), _sandbox(spec.sandbox), _loop()
    playing = asyncio.run_coroutine_threadsafe(
        run_rollout(
            request,
            benchmark.tasks[request.task_id],
            benchmark.panels[request.task_id],
            models,
            sandbox,
            spec.caps,
            spec.workflow,
            spec.seed,
        ),
        loop,
    )
    try:
        return playing.result()
    except BaseException:
        playing.cancel()
        raise


@functools.lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    """One event loop for the life of the process: HTTP clients are bound to theirs."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="rollouts", daemon=True)
    thread.start()
    atexit.register(_end, loop, thread)
    return loop


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Let what is pending hear of the end: libraries keep workers of their own on the loop."""

    async def cancel_all() -> None:
        pending = asyncio.all_tasks() - {asyncio.current_task()}
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=END_S) if pending else None

    with contextlib.suppress(TimeoutError):
        asyncio.run_coroutine_threadsafe(cancel_all(), loop).result(END_S)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(END_S)


@functools.lru_cache(maxsize=4)
def _models(profiles: tuple[ModelProfile, ...]) -> Sequence[LanguageModel]:
    return tuple(LiteLLMModel(profile) for profile in profiles)


@functools.lru_cache(maxsize=4)
def _sandbox(name: Isolation) -> Sandbox:
    return open_sandbox(name)
