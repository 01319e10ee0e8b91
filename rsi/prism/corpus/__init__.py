"""The embedded corpus "kata": families of small tasks, generated in memory with their panels."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rsi.prism.corpus.family import Family
    from rsi.prism.panel import Panel
    from rsi.prism.task import Task

# a family's place decides how its examples are written: append, do not reorder
MODULES = (
    "intervals",
    "ranking",
    "wrapping",
    "run_length",
    "splitting",
    "versions",
    "ledger",
    "slugs",
    "brackets",
    "durations",
    "windows",
    "dedupe",
    "matrices",
    "histograms",
    "fields",
    "rota",
)


def load_families() -> tuple[Family, ...]:
    """Import the registered families, in registry order."""
    return tuple(import_module(f"{__name__}.{name}").FAMILY for name in MODULES)


def load_kata() -> list[tuple[Task, Panel]]:
    """Give all kata tasks with their hidden panels; built once a process.

    Raises BenchmarkError when the shipped evidence does not fit the generated sources.
    """
    return list(_kata())


@cache
def _kata() -> tuple[tuple[Task, Panel], ...]:
    from rsi.prism.corpus.labels import read_labels

    return tuple(assemble_corpus(load_families(), read_labels()))


def assemble_corpus(
    families: tuple[Family, ...], labels: dict[str, Any]
) -> list[tuple[Task, Panel]]:
    """Build the tasks of these families from evidence, family by family.

    Raises BenchmarkError when the evidence lacks a family or does not fit its sources.
    """
    from rsi.errors import BenchmarkError
    from rsi.prism.corpus.engine import assemble

    pairs: list[tuple[Task, Panel]] = []
    for position, family in enumerate(families):
        start = f"kata-{family.name}-"
        own = [
            task for task in labels["tasks"] if task["task_id"].rpartition("-")[0] + "-" == start
        ]
        if not own:
            raise BenchmarkError(f"kata corpus: the evidence has no task of family {family.name}")
        pairs += assemble(family, position, own)
    return pairs
