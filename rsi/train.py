"""`python -m rsi.train +budget=fixed`: evolve a strategy, freeze the winner, test it."""

from __future__ import annotations

import importlib.metadata
import platform
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from evolution.loop import Result, evolve
from evolution.model_reflector import ModelReflector
from evolution.reflector import Reflector, SymptomReflector
from evolution.search import World
from rsi.assembly import Scene, Stage, need_tasks, open_stage, prepare, tracking_uri
from rsi.cli import run_command
from rsi.closing import print_closing
from rsi.compose import arguments, help_text, load, require_budget, wants_help
from rsi.errors import LimitReached, SettingsError
from rsi.frozen import freeze
from rsi.prism.task import SPLITS
from rsi.prompts import prompt_digests
from rsi.records import Rollout
from rsi.scoring import difference, figures, requests_for
from rsi.settings import TrainSettings
from rsi.strategy import Strategy
from workers.llm import LiteLLMModel
from workers.tracking_text import without_password

ENGINES = ("ray", "litellm", "mlflow", "pydantic", "docker", "numpy", "hydra-core")


def main() -> int:
    """Run the command; returns its exit code."""
    argv = arguments()
    if wants_help(argv):
        print(help_text("rsi.train", "config"))
        return 0
    require_budget(argv)
    return train(load("config", TrainSettings, argv), argv, Console())


def train(settings: TrainSettings, argv: Sequence[str], console: Console) -> int:
    """Search, freeze and test within the budget; resumable by the same command and run id."""
    scene = prepare(settings)
    need_tasks(scene.benchmark, "train", "selection", "test")
    planned = check_plan(settings, scene)
    for note in scene.notes:
        console.print(note, highlight=False, markup=False, soft_wrap=True)
    inputs = inputs_of(settings, scene)
    with open_stage(settings, scene, inputs, settings.budget, planned, console) as stage:
        try:
            summary = run(settings, scene, stage)
        except BaseException:
            console.print(
                f"resume with: {resume_command(argv, stage.store.run_id)}", soft_wrap=True
            )
            raise
    print_closing(console, summary, settings.runs_dir)
    return 0


def check_plan(settings: TrainSettings, scene: Scene) -> int:
    """Count the rollouts that the plan needs; raises SettingsError when the budget is too small."""
    sizes: dict[str, int] = {name: len(scene.benchmark.split(name)) for name in SPLITS}
    planned = settings.evolution.planned_rollouts(sizes)
    if planned > settings.budget.rollouts:
        parts = settings.evolution.breakdown(sizes)
        detail = ", ".join(f"{name} {count}" for name, count in parts.items())
        raise SettingsError(
            f"budget.rollouts: {settings.budget.rollouts} is too small for this plan, "
            f"which needs {planned} ({detail}); raise it or make evolution.* smaller"
        )
    return planned


def inputs_of(settings: TrainSettings, scene: Scene) -> dict[str, Any]:
    """What a resumed run must share with the one that was started."""
    return {
        "command": "train",
        "play": scene.inputs(),
        "strategy": settings.strategy.to_json(),
        "evolution": settings.evolution.to_json(),
        "reflector": settings.reflector.to_json(),
        "budget": settings.budget.to_json(),
        "prompts": prompt_digests(),
    }


def run(settings: TrainSettings, scene: Scene, stage: Stage) -> dict[str, Any]:
    """The straight line: search → winner → test → frozen file → summary."""
    store = stage.store
    store.once("run_started", store.run_id, lambda: {"inputs": store.inputs})
    world = World(
        evaluator=stage.evaluator,
        ledger=store,
        reflector=reflector_of(settings),
        caps=settings.caps,
    )
    tasks: dict[str, list[tuple[str, str]]] = {
        n: [(t.task_id, t.family) for t in scene.benchmark.split(n)] for n in SPLITS
    }
    result = evolve(settings.evolution, settings.strategy, tasks, world, settings.seed)
    tested = store.once(
        "release", "test", lambda: test(settings, scene, stage, result.winner.strategy)
    )
    frozen = freeze(sections(settings, scene, stage, result, tested))
    store.write_json("frozen_strategy.json", frozen)
    store.once("frozen", frozen["digest"], lambda: {"digest": frozen["digest"], "frozen": frozen})
    for candidate in result.archive.candidates:
        store.save_strategy(candidate.strategy)
    store.write_projections()
    store.once("run_finished", store.run_id, lambda: {"winnerId": result.winner.candidate_id})
    summary = summary_of(settings, stage, result, tested)
    store.write_json("summary.json", summary)
    return summary


def test(settings: TrainSettings, scene: Scene, stage: Stage, winner: Strategy) -> dict[str, Any]:
    """Play seed and winner on the test split, judged on full panels; paired by task."""
    plan = settings.evolution
    tasks = scene.benchmark.split("test")
    tasks = tasks[: plan.test_tasks] if plan.test_tasks else tasks
    asked = [
        requests_for(strategy, tasks, "test", plan.test_repetitions, "full")
        for strategy in (settings.strategy, winner)
    ]
    try:
        rollouts = stage.evaluator.evaluate([request for side in asked for request in side])
    except LimitReached as reached:
        return {"split": "test", "stoppedBy": reached.limit, "tasks": 0}
    seed, won = rollouts[: len(asked[0])], rollouts[len(asked[0]) :]
    return compared(len(tasks), seed, won)


def compared(tasks: int, seed: Sequence[Rollout], won: Sequence[Rollout]) -> dict[str, Any]:
    """Both sides' figures and the paired differences in RAR and JSF."""
    return {
        "split": "test",
        "tasks": tasks,
        "seed": figures(seed),
        "winner": figures(won),
        "gain": {name: difference(seed, won, name) for name in ("rar", "jsf")},
    }


def reflector_of(settings: TrainSettings) -> Reflector:
    """The diagnosing port: a language model when one is named, else symptoms."""
    if settings.reflector.kind == "symptoms":
        return SymptomReflector()
    if settings.reflector.model is None:
        raise SettingsError("reflector=model needs reflector.model.model=NAME")
    return ModelReflector(LiteLLMModel(settings.reflector.model))


def sections(
    settings: TrainSettings, scene: Scene, stage: Stage, result: Result, tested: dict[str, Any]
) -> dict[str, Any]:
    """The sections of the frozen file."""
    winner = result.winner
    return {
        "strategy": winner.strategy.to_json(),
        "strategyId": winner.strategy_id,
        "caps": settings.caps.to_json(),
        "models": [profile.to_json() for profile in settings.profiles],
        "workflow": settings.workflow.to_json(),
        "prompts": prompt_digests(),
        "lineage": list(result.archive.lineage(winner.candidate_id)),
        "splits": scene.benchmark.split_digests(),
        "result": tested,
        "engine": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ENGINES},
        },
        "runId": stage.store.run_id,
    }


def summary_of(
    settings: TrainSettings, stage: Stage, result: Result, tested: dict[str, Any]
) -> dict[str, Any]:
    """The keys of summary.json (docs/summary.md)."""
    rollouts = [event.data for event in stage.store.events("rollout")]
    elapsed = stage.evaluator.stopwatch.elapsed_s
    return {
        "command": "train",
        "runId": stage.store.run_id,
        "winnerId": result.winner.candidate_id,
        "winnerStrategyId": result.winner.strategy_id,
        "seedStrategyId": settings.strategy.strategy_id,
        "generations": len(stage.store.events("generation")),
        "candidates": len(stage.store.events("candidate")),
        "rollouts": len(rollouts),
        "wallSeconds": round(elapsed, 1),
        "rolloutsPerMinute": round(60 * len(rollouts) / elapsed, 1) if elapsed else 0.0,
        "test": tested,
        "isolation": sorted({r["isolation"] for r in rollouts}),
        "frozen": str(stage.store.folder / "frozen_strategy.json"),
        "tracking": without_password(tracking_uri(settings.tracking.uri, settings.runs_dir))
        if settings.tracking.enabled
        else "",
    }


def resume_command(argv: Sequence[str], run_id: str) -> str:
    """The exact command that goes on with this run."""
    kept = [a for a in argv if not a.startswith("run_id=")]
    return shlex.join([*_python(), "rsi.train", *kept, f"run_id={run_id}"])


def _python() -> list[str]:
    return [sys.executable, "-m"]


if __name__ == "__main__":
    run_command(main)
