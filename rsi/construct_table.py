"""The closing table of a construction: a table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rsi.prism.build.funnel import Stage
from rsi.prism.task import Split


def print_funnel(stages: Sequence[Stage], splits: Mapping[Split, int], out: Path) -> None:
    """Print what each stage kept and dropped and why, the split counts, and the folder."""
    if sys.stdout.isatty():
        Console().print(_table(stages))
    else:
        for stage in stages:
            line = f"{stage.name}: {stage.entered} entered, {stage.kept} kept"
            print(line + "".join(f", {n} {reason}" for reason, n in stage.reasons.items()))
    counts = ", ".join(f"{count} {name}" for name, count in splits.items())
    print(f"{sum(splits.values())} tasks ({counts}) in {out}")


def _table(stages: Sequence[Stage]) -> Table:
    table = Table(title="construction")
    for name in ("stage", "entered", "kept", "dropped because"):
        table.add_column(name, justify="left" if name in ("stage", "dropped because") else "right")
    for stage in stages:
        reasons = "\n".join(f"{n} {reason}" for reason, n in stage.reasons.items())
        table.add_row(stage.name, str(stage.entered), str(stage.kept), reasons or "-")
    return table
