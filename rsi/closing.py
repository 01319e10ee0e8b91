"""What a command prints at its end: a table of figures with intervals, and what to type next."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

SHOWN = ("rar", "jsf", "var", "irr", "h", "rar_strict", "jsf_strict")


def print_closing(console: Console, summary: Mapping[str, Any], runs_dir: Path) -> None:
    """Print the test figures of a training run, where things are, and the next commands."""
    tested = summary["test"]
    if "seed" in tested:
        title = f"{tested['split']} split, {tested['tasks']} tasks"
        print_scores(console, title, {side: tested[side] for side in ("seed", "winner")})
    else:
        _say(
            console,
            f"not tested: the budget ended ({tested['stoppedBy']}); "
            f"raise budget.{tested['stoppedBy']} or make evolution.* smaller in a new run",
        )
    if summary["winnerStrategyId"] == summary["seedStrategyId"]:
        _say(console, "the winner is the seed: no child was shown to be better")
    else:
        for name, gain in tested.get("gain", {}).items():
            _say(console, gain_line(name, gain))
    _say(
        console,
        f"{summary['rollouts']} rollouts in {summary['wallSeconds']:.0f} s "
        f"({summary['rolloutsPerMinute']:.0f} a minute), winner {summary['winnerId']}, "
        f"frozen in {summary['frozen']}",
    )
    _say(console, "next:")
    moved = "" if runs_dir == Path("runs") else f" runs_dir={runs_dir}"
    _say(console, f"  {sys.executable} -m rsi.report run={summary['runId']}{moved}")
    _say(
        console,
        f"  {sys.executable} -m rsi.evaluate strategy={summary['frozen']} split=test{moved}",
    )
    if summary["tracking"]:
        _say(console, f"  {sys.executable} -m mlflow ui --backend-store-uri {summary['tracking']}")


def print_scores(console: Console, title: str, sides: Mapping[str, Mapping[str, Any]]) -> None:
    """Print a table of scores with intervals, one column per side, and the isolation."""
    isolation = sorted({name for side in sides.values() for name in side["isolation"]})
    table = Table(title=f"{title}, isolation: {', '.join(isolation) or 'none'}")
    table.add_column("score")
    for name in sides:
        table.add_column(name)
    for score in SHOWN:
        table.add_row(score, *(side["scores"][score]["text"] for side in sides.values()))
    console.print(table)
    for name, side in sides.items():
        if side["infrastructureFailures"]:
            _say(console, f"{name}: {side['infrastructureFailures']} rollouts without a score")


def gain_line(name: str, gain: Mapping[str, Any]) -> str:
    """One paired difference in words."""
    if not gain["tasks"]:
        return f"{name} gain: no task was finished on both sides"
    low, high = 100 * gain["interval"]["low"], 100 * gain["interval"]["high"]
    return (
        f"{name} gain {100 * gain['value']:+.1f} points [{low:+.1f}, {high:+.1f}] "
        f"on {gain['tasks']} paired tasks ({gain['gains']} gained, {gain['losses']} lost, "
        f"exact p = {gain['pValue']:.3f})"
    )


def _say(console: Console, line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)
