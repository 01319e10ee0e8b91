"""Benchmark items on disk: a public tree of tasks and a hidden tree of panels (page 5)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from rsi.digest import digest_of
from rsi.errors import BenchmarkError, SubmissionError
from rsi.prism.build.labels import VerifierRun
from rsi.prism.panel import Implementation, Panel
from rsi.prism.task import SPLITS, Split, Task
from rsi.prism.tree import Tree, check_path
from workers.dataset_files import plain_path, read_text
from workers.dataset_format import (
    ChecksFile,
    DatasetFile,
    ImplementationEntry,
    LabelsFile,
    PanelFile,
    ProvenanceFile,
    TaskFile,
    parse,
)
from workers.dataset_rules import check_index, check_kinds, check_labels
from workers.trees import read_tree

INDEX = "dataset.json"
WORKSPACE = "environment/workspace"


@dataclass(frozen=True)
class Dataset:
    """An opened folder; tasks are read when they are asked for, each half by itself.

    `broken` has one line for every task that `open_dataset(..., skip_broken=True)` left out.
    """

    root: Path
    index: DatasetFile
    task_ids: tuple[str, ...]
    broken: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.index.name

    def split(self, name: Split) -> tuple[str, ...]:
        """The ids of one split's tasks."""
        return tuple(i for i in self.task_ids if self.index.tasks[i].split == name)

    def load_task(self, task_id: str) -> Task:
        """Read the public half of a task; raises BenchmarkError naming file and key."""
        entry = self.index.tasks.get(task_id)
        if entry is None:
            raise BenchmarkError(f"{self.root / INDEX}: tasks.{task_id}: no such task")
        home = f"tasks/{task_id}"
        settings = self._task_file(task_id)
        program = self._tree(f"{home}/{WORKSPACE}")
        self._same(f"{home}/task.yaml", "program_digest", settings.program_digest, program.digest)
        instruction = self._text(f"{home}/instruction.md")
        if not instruction.strip():
            raise BenchmarkError(f"{self.root}/{home}/instruction.md: is empty")
        public = settings.model_dump(exclude={"program_digest", "panel_digest", "limits"})
        return Task(
            **public,
            split=entry.split,
            family=entry.family,
            source=entry.source,
            instruction=instruction,
            program=program,
            limits=settings.limits,
        )

    def load_panel(self, task_id: str) -> Panel:
        """Read the hidden half of a task; raises BenchmarkError naming file and key."""
        home = f"panels/{task_id}"
        listed = parse(PanelFile, *self._file(f"{home}/panel.json"))
        where = f"{self.root}/{home}/panel.json"
        if listed.task_id != task_id:
            raise BenchmarkError(f"{where}: task_id: {listed.task_id!r} in the folder of {task_id}")
        check_kinds(where, listed)
        labels = parse(LabelsFile, *self._file(f"{home}/labels.json"))
        verifier = parse(ChecksFile, *self._file(f"{home}/verifier/checks.json"))
        known = tuple(check.check_id for check in verifier.checks)
        check_labels(f"{self.root}/{home}/labels.json", listed, labels, known)
        panel = self._built(task_id, listed, labels, verifier)
        stated = self._task_file(task_id).panel_digest
        self._same(f"tasks/{task_id}/task.yaml", "panel_digest", stated, panel.digest)
        return panel

    def load_item(self, task_id: str) -> tuple[Task, Panel]:
        """Read both halves of a task and hold them against the digest in the index."""
        task, panel = self.load_task(task_id), self.load_panel(task_id)
        stated = self.index.tasks[task_id].digest
        self._same(INDEX, f"tasks.{task_id}.digest", stated, item_digest(task, panel))
        return task, panel

    def load_runs(self, task_id: str) -> dict[str, tuple[VerifierRun, ...]]:
        """Read the recorded verifier runs of a task by implementation id."""
        labels = parse(LabelsFile, *self._file(f"panels/{task_id}/labels.json"))
        return {name: label.runs for name, label in labels.labels.items()}

    def faults(self) -> Iterator[tuple[str, str]]:
        """Read everything strictly and give (task_id, one line) for each fault."""
        for task_id in self.task_ids:
            try:
                self.load_item(task_id)
            except BenchmarkError as error:
                yield task_id, str(error)
        for half in ("tasks", "panels"):
            folder = self.root / half
            for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
                if name not in self.index.tasks:
                    yield name, f"{folder / name}: not named in {INDEX}"

    def _built(
        self, task_id: str, listed: PanelFile, labels: LabelsFile, verifier: ChecksFile
    ) -> Panel:
        home = f"panels/{task_id}"
        origins = {}
        if (self.root / home / "provenance.json").exists():
            stated = parse(ProvenanceFile, *self._file(f"{home}/provenance.json"))
            origins = {name: entry.origin for name, entry in stated.provenance.items()}
        implementations = tuple(
            Implementation(
                implementation_id=entry.implementation_id,
                kind=entry.kind,
                program=self._program(task_id, entry),
                failed_checks=labels.labels[entry.implementation_id].failed_checks,
                origin=origins.get(entry.implementation_id, ""),
            )
            for entry in listed.implementations
        )
        try:
            return Panel(
                task_id=task_id,
                implementations=implementations,
                prelude=verifier.prelude,
                checks=verifier.checks,
            )
        except ValidationError as error:
            line = " ".join(str(error.errors()[0]["msg"]).split())
            raise BenchmarkError(f"{self.root}/{home}/panel.json: {line}") from None

    def _program(self, task_id: str, entry: ImplementationEntry) -> Tree:
        where = (
            f"{self.root}/panels/{task_id}/panel.json: implementations.{entry.implementation_id}"
        )
        if not entry.tree and entry.kind != "initial":
            raise BenchmarkError(f"{where}.tree: missing; only the initial state has none")
        home = f"panels/{task_id}/{entry.tree}" if entry.tree else f"tasks/{task_id}/{WORKSPACE}"
        try:
            check_path(entry.tree or WORKSPACE)
        except SubmissionError as error:
            raise BenchmarkError(f"{where}.tree: {error}") from None
        program = self._tree(home)
        if entry.program_digest and entry.program_digest != program.digest:
            raise BenchmarkError(f"{where}.program_digest: does not match the files in {home}")
        return program

    def _task_file(self, task_id: str) -> TaskFile:
        settings = parse(TaskFile, *self._file(f"tasks/{task_id}/task.yaml"))
        if settings.task_id != task_id:
            raise BenchmarkError(
                f"{self.root}/tasks/{task_id}/task.yaml: task_id: {settings.task_id!r} "
                f"in the folder of {task_id}"
            )
        return settings

    def _same(self, file: str, key: str, stated: str, real: str) -> None:
        if stated and stated != real:
            raise BenchmarkError(
                f"{self.root}/{file}: {key}: does not match what is on disk ({real})"
            )

    def _tree(self, relative: str) -> Tree:
        folder = plain_path(self.root, relative)
        if not folder.is_dir():
            raise BenchmarkError(f"{folder}: no such folder")
        try:
            tree = read_tree(folder, strict=True)
        except SubmissionError as error:
            raise BenchmarkError(f"{folder}: {error}") from None
        except OSError as error:
            raise BenchmarkError(f"{folder}: cannot be read: {error.strerror}") from None
        if not tree.files:
            raise BenchmarkError(f"{folder}: holds no files")
        return tree

    def _text(self, relative: str) -> str:
        return read_text(self.root, relative)

    def _file(self, relative: str) -> tuple[str, str]:
        return f"{self.root}/{relative}", self._text(relative)


def open_dataset(path: str | os.PathLike[str], skip_broken: bool = False) -> Dataset:
    """Open a folder in the on-disk format; raises BenchmarkError, one line with file and key.

    With `skip_broken` every task is read once, and each one at fault is left out and listed in
    `broken`; what is wrong with the index itself is an error all the same.
    """
    root = Path(path)
    if not root.is_dir():
        raise BenchmarkError(f"{root}: not a folder")
    where = f"{root / INDEX}"
    index = parse(DatasetFile, where, read_text(root, INDEX))
    check_index(where, index)
    if index.digest and index.digest != index_digest(index):
        raise BenchmarkError(f"{where}: digest: does not match the entries in tasks")
    dataset = Dataset(root, index, tuple(sorted(index.tasks)))
    if not skip_broken:
        return dataset
    faults = [(i, line) for i, line in dataset.faults() if i in index.tasks]
    bad = {task_id for task_id, _ in faults}
    kept = tuple(i for i in dataset.task_ids if i not in bad)
    return Dataset(root, index, kept, tuple(line for _, line in faults))


def item_digest(task: Task, panel: Panel) -> str:
    """Hash both halves of a task: texts, programs, checks and labels."""
    return digest_of([task.to_json(), panel.to_json()])


def index_digest(index: DatasetFile) -> str:
    """Hash the index's entries: ids, splits, families, sources and item digests."""
    entries = {i: entry.model_dump() for i, entry in index.tasks.items()}
    return digest_of([index.name, index.version, entries])


def split_counts(index: DatasetFile) -> dict[Split, int]:
    """How many tasks each split has."""
    return {name: sum(e.split == name for e in index.tasks.values()) for name in SPLITS}
