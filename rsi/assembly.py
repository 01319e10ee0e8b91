"""Builds what a command plays with: tasks, sandbox, pool, run directory, evaluator, tracker.

Everything that can be refused is refused before the run directory is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from rsi.budget import Budget, Caps
from rsi.errors import SettingsError
from rsi.prism.task import Task
from rsi.progress import Progress, View
from rsi.settings import ClusterSettings, PlaySettings
from workers.benchmark import Benchmark, open_benchmark
from workers.budgeting import meter_of
from workers.evaluator import JournaledEvaluator, Terms
from workers.llm import ModelProfile, check_profile
from workers.local_pool import LocalPool
from workers.play import PlaySpec, play_rollout
from workers.pool import RayPool
from workers.run_ids import new_run_id
from workers.sandbox import choose_sandbox
from workers.store import RunStore
from workers.tracker import MlflowTracker

FLUSH_S = 20.0


@dataclass(frozen=True)
class Scene:
    """What was found usable before anything was written."""

    benchmark: Benchmark
    spec: PlaySpec
    notes: tuple[str, ...]

    def inputs(self) -> dict[str, Any]:
        """What makes a run the same run, as JSON: tasks, sandbox, models, caps, seed."""
        spec = self.spec.to_json()
        spec["benchmark"] = {**spec["benchmark"], "splitDigests": self.benchmark.split_digests()}
        return spec


@dataclass(frozen=True)
class Stage:
    """An open run: where it is recorded and what plays its rollouts."""

    store: RunStore
    evaluator: JournaledEvaluator
    tasks: Mapping[str, Task]


def prepare(settings: PlaySettings) -> Scene:
    """Open the tasks, choose the sandbox, ask each model endpoint once; nothing is written.

    Raises a UserError for what cannot work: no tasks, no isolation, a wrong key or model.
    """
    benchmark = open_benchmark(settings.benchmark)
    embedded = all(p.model.startswith("builtin/") for p in settings.profiles)
    trusted = embedded and settings.benchmark.name == "kata"
    sandbox, why = choose_sandbox(settings.sandbox.name, trusted=trusted)
    for profile in settings.profiles:
        check_profile(profile)
    spec = PlaySpec(
        benchmark=settings.benchmark,
        models=settings.profiles,
        sandbox=sandbox.isolation,
        caps=settings.caps,
        workflow=settings.workflow,
        seed=settings.seed,
    )
    sizes = ", ".join(f"{n} {len(benchmark.split(n))}" for n in ("train", "selection", "test"))
    notes = [f"tasks: {benchmark.name} ({sizes})", why]
    notes += [f"left out: {line}" for line in benchmark.broken]
    return Scene(benchmark, spec, tuple(notes))


@contextmanager
def open_stage(
    settings: PlaySettings,
    scene: Scene,
    inputs: dict[str, Any],
    budget: Budget,
    planned: int,
    console: Console,
) -> Iterator[Stage]:
    """Open pool, run directory, tracker and progress display; close them in any case."""
    run_id = settings.run_id or new_run_id(datetime.now())
    with ExitStack() as stack:
        pool = stack.enter_context(_pool(settings.cluster, scene.spec))
        store = stack.enter_context(RunStore.create_or_resume(settings.runs_dir, run_id, inputs))
        state = "resumed" if store.resumed else "new"
        console.print(f"run: {store.folder} ({state})", highlight=False, markup=False)
        if settings.tracking.enabled:
            stack.enter_context(_tracking(settings, store))
        meter = meter_of(budget)
        view = View(planned=planned, limits=meter.limits)
        stack.enter_context(Progress(store.journal, view, console))
        terms = Terms(
            caps=scene.spec.caps,
            isolation=scene.spec.sandbox,
            usd_per_rollout=most_usd(scene.spec.caps, scene.spec.models),
            wall_seconds=budget.wall_seconds,
        )
        tasks = scene.benchmark.tasks
        yield Stage(store, JournaledEvaluator(store, pool, meter, terms, tasks), tasks)


def tracking_uri(uri: str, runs_dir: Path) -> str:
    """Where MLflow keeps its records: the given URI, or a sqlite file in the runs directory."""
    return uri or f"sqlite:///{(runs_dir / 'mlflow.db').absolute()}"


def most_usd(caps: Caps, models: tuple[ModelProfile, ...]) -> float:
    """The dollars that one rollout can cost at most: its token caps at the dearest price."""
    return max(
        (
            caps.input_tokens * m.input_usd_per_million
            + caps.output_tokens * m.output_usd_per_million
        )
        / 1e6
        for m in models
    )


def need_tasks(benchmark: Benchmark, *splits: str) -> None:
    """Raise SettingsError unless each split has a task."""
    for split in splits:
        if not any(t.split == split for t in benchmark.tasks.values()):
            raise SettingsError(
                f"benchmark {benchmark.name}: split {split} has no usable task; "
                "give it one in dataset.json (docs/task-format.md)"
            )


@contextmanager
def _tracking(settings: PlaySettings, store: RunStore) -> Iterator[None]:
    uri = tracking_uri(settings.tracking.uri, settings.runs_dir)
    tracker = MlflowTracker(uri, settings.tracking.experiment)
    tracker.start(store)
    try:
        yield
    finally:
        tracker.stop(FLUSH_S)


def _pool(cluster: ClusterSettings, spec: PlaySpec) -> Any:
    if cluster.kind == "threads":
        return LocalPool(play_rollout, spec, cluster.workers)
    return RayPool(play_rollout, spec, cluster.workers, cluster.window, cluster.address)
