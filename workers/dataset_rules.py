"""What must hold between the files of a dataset, beyond the form of each."""

from __future__ import annotations

from rsi.errors import BenchmarkError
from rsi.prism.build.labels import label_of
from rsi.prism.outcome import Kind
from rsi.prism.task import SPLITS, TASK_ID
from workers.dataset_format import (
    DatasetFile,
    ImplementationEntry,
    LabelEntry,
    LabelsFile,
    PanelFile,
)

_SINGLE: tuple[Kind, ...] = ("initial", "reference")


def check_index(where: str, index: DatasetFile) -> None:
    """Raise BenchmarkError for bad task ids, wrong split counts, or a family in two splits."""
    homes: dict[str, tuple[str, str]] = {}
    for task_id, entry in index.tasks.items():
        if not TASK_ID.match(task_id):
            raise BenchmarkError(
                f"{where}: tasks: task_id {task_id!r} does not match {TASK_ID.pattern}"
            )
        first, split = homes.setdefault(entry.family, (task_id, entry.split))
        if split != entry.split:
            raise BenchmarkError(
                f"{where}: tasks.{task_id}.family: {entry.family!r} is in split {entry.split} "
                f"and, by {first}, in {split}; a family belongs to one split"
            )
    counts = {name: sum(e.split == name for e in index.tasks.values()) for name in SPLITS}
    for name, count in index.splits.items():
        if count != counts[name]:
            raise BenchmarkError(
                f"{where}: splits.{name}: says {count} tasks, there are {counts[name]}"
            )


def check_kinds(where: str, listed: PanelFile) -> None:
    """Raise BenchmarkError unless a panel has one initial state and one reference, ids unique."""
    kinds = [entry.kind for entry in listed.implementations]
    for kind in _SINGLE:
        if kinds.count(kind) != 1:
            raise BenchmarkError(
                f"{where}: implementations: {kinds.count(kind)} of kind {kind}; "
                "a panel has exactly one"
            )
    names = [entry.implementation_id for entry in listed.implementations]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise BenchmarkError(f"{where}: implementations: {twice} is listed twice")


def check_labels(
    where: str, listed: PanelFile, labels: LabelsFile, checks: tuple[str, ...]
) -> None:
    """Raise BenchmarkError for a label that is missing, spare, or against kind or runs."""
    for entry in listed.implementations:
        name = entry.implementation_id
        label = labels.labels.get(name)
        if label is None:
            raise BenchmarkError(f"{where}: labels.{name}: missing")
        line = _label_fault(entry, label, checks)
        if line:
            raise BenchmarkError(f"{where}: labels.{name}: {line}")
    extra = set(labels.labels) - {entry.implementation_id for entry in listed.implementations}
    if extra:
        raise BenchmarkError(f"{where}: labels.{min(extra)}: not an implementation of the panel")


def _label_fault(entry: ImplementationEntry, label: LabelEntry, checks: tuple[str, ...]) -> str:
    """What is wrong with a label: unknown checks, against its kind, or against its runs."""
    failed = label.failed_checks
    unknown = [check for check in failed if checks and check not in checks]
    if unknown:
        return f"failed_checks: {unknown[0]!r} is no check of the verifier"
    good = entry.kind in ("reference", "valid")
    if good and failed:
        return f"kind is {entry.kind} but {len(failed)} checks failed: {', '.join(failed[:3])}"
    if checks and not good and not failed:
        return f"kind is {entry.kind} but no check failed"
    if not label.runs:
        return ""
    derived = label_of(label.runs, len(checks))
    if derived.verdict not in ("valid", "invalid"):
        return f"runs: give no label: {derived.reason}"
    if set(derived.failed_checks) != set(failed):
        return "failed_checks: do not follow from the recorded runs"
    return ""
