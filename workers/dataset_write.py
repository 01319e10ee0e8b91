"""Writes benchmark items in the on-disk format: the whole folder appears at once or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from rsi.errors import BenchmarkError, SandboxFailure, SubmissionError
from rsi.prism.build.labels import VerifierRun
from rsi.prism.panel import Implementation, Panel
from rsi.prism.task import Task
from rsi.prism.tree import Tree
from workers.dataset import INDEX, WORKSPACE, index_digest, item_digest, open_dataset, split_counts
from workers.dataset_format import (
    ChecksFile,
    DatasetFile,
    Format,
    ImplementationEntry,
    LabelEntry,
    LabelsFile,
    PanelFile,
    ProvenanceEntry,
    ProvenanceFile,
    TaskEntry,
    TaskFile,
)
from workers.dataset_rules import check_index
from workers.trees import write_tree

Runs = Mapping[str, Mapping[str, Sequence[VerifierRun]]]


class About(Format):
    """What the index says beside its tasks: version, seed, funnel counts and thresholds."""

    version: str = "1"
    seed: int = 0
    funnel: dict[str, Any] = Field(default_factory=dict)
    thresholds: dict[str, float] = Field(default_factory=dict)


def write_dataset(
    out: str | os.PathLike[str],
    items: Iterable[tuple[Task, Panel]],
    name: str,
    about: About | None = None,
    runs: Runs | None = None,
) -> DatasetFile:
    """Write tasks and panels to a new folder, or in place of a dataset that is there.

    `runs` holds recorded verifier runs by task and implementation. Raises BenchmarkError when
    `out` holds anything else, or when the items do not make a dataset; `out` is then untouched.
    """
    target = Path(out)
    check_replaceable(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise BenchmarkError(f"{target}: cannot write: {error.strerror}") from None
    try:
        index = _fill(draft, items, name, about or About(), runs or {})
        draft.chmod(0o755)
        _swap(draft, target)
    except OSError as error:
        raise BenchmarkError(f"{target}: cannot write: {error.strerror}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return index


def check_replaceable(target: Path) -> None:
    """Raise BenchmarkError unless a path is free, an empty folder, or a dataset."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise BenchmarkError(f"{target}: exists and is not a folder; choose another place")
    if not target.exists() or not any(target.iterdir()):
        return
    try:
        open_dataset(target)
    except BenchmarkError as error:
        raise BenchmarkError(
            f"{target}: not empty and not a dataset ({error}); choose an empty place"
        ) from None


def _fill(
    draft: Path, items: Iterable[tuple[Task, Panel]], name: str, about: About, runs: Runs
) -> DatasetFile:
    entries: dict[str, TaskEntry] = {}
    for task, panel in items:
        if task.task_id in entries:
            raise BenchmarkError(f"{task.task_id}: given twice; task ids are unique")
        _write_task(draft / "tasks" / task.task_id, task, panel)
        _write_panel(draft / "panels" / task.task_id, task, panel, runs.get(task.task_id, {}))
        entries[task.task_id] = TaskEntry(
            split=task.split,
            family=task.family,
            source=task.source,
            digest=item_digest(task, panel),
        )
    bare = DatasetFile(name=name, tasks=dict(sorted(entries.items())), **about.model_dump())
    check_index(name, bare)
    index = DatasetFile.model_validate(
        {**bare.model_dump(), "splits": split_counts(bare), "digest": index_digest(bare)}
    )
    _write_json(draft / INDEX, index)
    return index


def _write_task(home: Path, task: Task, panel: Panel) -> None:
    _write_program(task.program, home / WORKSPACE)
    (home / "instruction.md").write_text(task.instruction, encoding="utf-8", newline="")
    settings = TaskFile(
        task_id=task.task_id,
        language=task.language,
        artifact_dir=task.artifact_dir,
        entry=task.entry,
        image=task.image,
        limits=task.limits,
        program_digest=task.program.digest,
        panel_digest=panel.digest,
    )
    text = yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    (home / "task.yaml").write_text(text, encoding="utf-8")


def _write_panel(
    home: Path, task: Task, panel: Panel, runs: Mapping[str, Sequence[VerifierRun]]
) -> None:
    if panel.task_id != task.task_id:
        raise BenchmarkError(f"{task.task_id}: comes with the panel of {panel.task_id}")
    entries = tuple(_write_implementation(home, task, item) for item in panel.implementations)
    labels = {
        item.implementation_id: LabelEntry(
            failed_checks=item.failed_checks, runs=tuple(runs.get(item.implementation_id, ()))
        )
        for item in panel.implementations
    }
    origins = {
        item.implementation_id: ProvenanceEntry(origin=item.origin)
        for item in panel.implementations
    }
    _write_json(home / "panel.json", PanelFile(task_id=task.task_id, implementations=entries))
    _write_json(home / "labels.json", LabelsFile(labels=labels))
    _write_json(home / "provenance.json", ProvenanceFile(provenance=origins))
    (home / "verifier").mkdir(parents=True)
    checks = ChecksFile(prelude=panel.prelude, checks=panel.checks)
    _write_json(home / "verifier" / "checks.json", checks)


def _write_implementation(home: Path, task: Task, item: Implementation) -> ImplementationEntry:
    tree = f"impl/{item.implementation_id}/tree"
    if item.kind == "initial":
        if item.program.digest != task.program.digest:
            raise BenchmarkError(
                f"{task.task_id}: the panel's initial state {item.implementation_id} "
                "is not the program that agents start from"
            )
        tree = ""
    entry = ImplementationEntry(
        implementation_id=item.implementation_id,
        kind=item.kind,
        tree=tree,
        program_digest=item.program.digest,
    )
    home.mkdir(parents=True, exist_ok=True)
    if tree:
        _write_program(item.program, home / tree)
    return entry


def _write_program(program: Tree, folder: Path) -> None:
    folder.mkdir(parents=True)
    try:
        write_tree(program, folder)
    except SubmissionError as error:
        raise BenchmarkError(f"{folder}: {error}") from None
    except SandboxFailure as error:
        raise BenchmarkError(f"{folder}: cannot write: {error}") from None


def _write_json(path: Path, content: Format) -> None:
    text = json.dumps(content.model_dump(mode="json"), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _swap(draft: Path, target: Path) -> None:
    """Put the draft in place; an older dataset is moved aside first and removed after."""
    if not target.exists() or not any(target.iterdir()):
        os.replace(draft, target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
    os.replace(target, aside)
    try:
        os.replace(draft, target)
    except OSError:
        os.replace(aside, target)
        raise
    shutil.rmtree(aside, ignore_errors=True)
