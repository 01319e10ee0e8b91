"""Where tasks come from: the embedded corpus, or a folder in the on-disk format."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

from pydantic import model_validator

from rsi.digest import digest_of
from rsi.errors import BenchmarkError
from rsi.prism.corpus import load_kata
from rsi.prism.panel import Panel
from rsi.prism.task import SPLITS, Split, Task
from rsi.wire import Record
from workers.dataset import open_dataset


class BenchmarkSettings(Record):
    """`kata` is the embedded corpus; `folder` reads the on-disk format below `path`."""

    name: Literal["kata", "folder"] = "kata"
    path: str | None = None

    @model_validator(mode="after")
    def _folder_has_path(self) -> Self:
        if (self.name == "folder") != (self.path is not None):
            raise ValueError("benchmark=folder needs benchmark.path=DIR, and only it takes one")
        return self


@dataclass(frozen=True)
class Benchmark:
    """Tasks and hidden panels by task id; `broken` holds one line per task left out."""

    name: str
    tasks: Mapping[str, Task]
    panels: Mapping[str, Panel] = field(repr=False)
    broken: tuple[str, ...] = ()

    def split(self, name: Split) -> tuple[Task, ...]:
        """The tasks of one split, by task id."""
        return tuple(t for _, t in sorted(self.tasks.items()) if t.split == name)

    def split_digests(self) -> dict[str, str]:
        """One digest per split over task ids, programs, instructions and panels."""
        return {
            name: digest_of(
                [
                    [t.task_id, t.program.digest, t.instruction, self.panels[t.task_id].digest]
                    for t in self.split(name)
                ]
            )
            for name in SPLITS
        }


@functools.lru_cache(maxsize=2)
def open_benchmark(settings: BenchmarkSettings) -> Benchmark:
    """Open the tasks once per process; raises BenchmarkError when nothing usable is there."""
    if settings.name == "kata":
        pairs = load_kata()
        return Benchmark("kata", {t.task_id: t for t, _ in pairs}, {t.task_id: p for t, p in pairs})
    assert settings.path is not None, "checked when the settings were made"
    dataset = open_dataset(settings.path, skip_broken=True)
    tasks = {i: dataset.load_task(i) for i in dataset.task_ids}
    panels = {i: dataset.load_panel(i) for i in dataset.task_ids}
    if not tasks:
        raise BenchmarkError(f"{settings.path}: no usable task; first fault: {dataset.broken[0]}")
    return Benchmark(dataset.name, tasks, panels, tuple(dataset.broken))
