"""`python -m rsi.evaluate strategy=FILE split=test`: judge a frozen strategy on a split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from rsi.assembly import need_tasks, open_stage, prepare
from rsi.budget import Budget
from rsi.cli import run_command
from rsi.closing import print_scores
from rsi.compose import arguments, help_text, load, wants_help
from rsi.errors import FrozenError
from rsi.frozen import differences, read_frozen, strategy_of
from rsi.prompts import prompt_digests
from rsi.scoring import figures, requests_for
from rsi.settings import EvaluateSettings


def main() -> int:
    """Run the command; returns its exit code."""
    argv = arguments()
    if wants_help(argv):
        print(help_text("rsi.evaluate", "evaluate"))
        return 0
    return evaluate(load("evaluate", EvaluateSettings, argv), Console())


def evaluate(settings: EvaluateSettings, console: Console) -> int:
    """Play the frozen strategy on a split, judge on full panels, print scores with intervals."""
    document = read_frozen(settings.frozen)
    check_fit(document, settings)
    scene = prepare(settings)
    need_tasks(scene.benchmark, settings.split)
    tasks = scene.benchmark.split(settings.split)
    tasks = tasks[: settings.tasks] if settings.tasks else tasks
    strategy = strategy_of(document)
    requests = requests_for(strategy, tasks, settings.split, settings.repetitions, "full")
    inputs = {
        "command": "evaluate",
        "play": scene.inputs(),
        "digest": document["digest"],
        "split": settings.split,
        "tasks": len(tasks),
        "repetitions": settings.repetitions,
    }
    for note in scene.notes:
        console.print(note, highlight=False, markup=False, soft_wrap=True)
    budget = Budget(rollouts=len(requests))
    with open_stage(settings, scene, inputs, budget, len(requests), console) as stage:
        store = stage.store
        store.once("run_started", store.run_id, lambda: {"inputs": store.inputs})
        rollouts = stage.evaluator.evaluate(requests)
        scored = figures(rollouts)
        result = {"split": settings.split, "tasks": len(tasks), "winner": scored}
        store.once("release", settings.split, lambda: result)
        summary = {
            "command": "evaluate",
            "runId": store.run_id,
            "split": settings.split,
            "tasks": len(tasks),
            "repetitions": settings.repetitions,
            "strategyId": strategy.strategy_id,
            "digest": document["digest"],
            **scored,
        }
        store.write_json("summary.json", summary)
        store.once("run_finished", store.run_id, dict)
    title = f"{settings.split} split, {len(tasks)} tasks × {settings.repetitions}"
    print_scores(console, title, {strategy.strategy_id[:12]: summary})
    console.print(f"written: {store.folder / 'summary.json'}", highlight=False, soft_wrap=True)
    return 0


def check_fit(document: Mapping[str, Any], settings: EvaluateSettings) -> None:
    """Refuse a file frozen under other caps or prompts unless the user allows it."""
    names = differences(dict(document), settings.caps, prompt_digests())
    if names and not settings.allow_changes:
        raise FrozenError(
            f"{settings.frozen}: frozen under other {', '.join(names)}; "
            "use the installed version it was frozen with, or say allow_changes=true"
        )


if __name__ == "__main__":
    run_command(main)
