"""Turn implementation panels collected from public results into tasks and hidden panels.

A record holds the task text, a reference, other valid and invalid programs, and executable
checks. A full and verified record becomes 1 + 4 + 5 implementations beside its initial state;
any other one the signal panel {b, g}, which may only train.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rsi.digest import seed_of
from rsi.errors import SubmissionError
from rsi.prism.build.funnel import Dropped, Stage
from rsi.prism.build.labels import Label
from rsi.prism.build.verify import contradiction, doubts, relabelled
from rsi.prism.outcome import Kind
from rsi.prism.panel import Check, Implementation, Panel
from rsi.prism.task import Split, Task
from rsi.prism.tree import Tree

Item = tuple[Task, Panel]
SHARES: tuple[tuple[Split, float], ...] = (
    ("train", 0.40),
    ("selection", 0.15),
    ("release", 0.15),
    ("test", 0.30),
)
SHOWN_ORIGINS = 3


class PanelCheck(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: int = Field(ge=0)
    check: str = Field(min_length=1)


class PanelChoice(BaseModel):
    model_config = ConfigDict(extra="ignore")

    full: bool
    verified: bool = False
    correct_idx: tuple[int, ...] = ()
    incorrect_idx: tuple[int, ...] = ()


class PanelRecord(BaseModel):
    """One line of a panel file; keys that are not named here are not used."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    task_id: str
    source: str
    language: str
    instruction: str = Field(min_length=1)
    entry_point: str
    module_file: str
    context_header: str | None = None
    check_prelude: str = ""
    initial_stub: str
    initial_buggy: str | None = None
    gold: str
    gold_source: str = ""
    correct: tuple[str, ...]
    correct_solvers: tuple[tuple[str, ...], ...] = ()
    incorrect: tuple[str, ...]
    incorrect_solvers: tuple[tuple[str, ...], ...] = ()
    incorrect_failed_checks: tuple[tuple[int, ...], ...]
    checks: tuple[PanelCheck, ...]
    panel: PanelChoice


class ConversionSettings(BaseModel):
    """`signal` says what happens to records without a full verified panel."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = 42
    signal: Literal["train", "drop"] = "train"


def convert(
    records: Iterable[dict[str, Any]], settings: ConversionSettings
) -> tuple[list[Item], Stage]:
    """Convert records to tasks and panels; what cannot be converted is dropped with a reason."""
    kept: dict[str, Item] = {}
    drops = []
    for number, raw in enumerate(records, 1):
        name = str(raw.get("task_id", f"record {number}"))
        made = _convert_one(name, raw, settings)
        if isinstance(made, Dropped):
            drops.append(made)
        elif made[0].task_id in kept:
            drops.append(Dropped(task_id=name, reason="duplicate task id"))
        else:
            kept[made[0].task_id] = made
    return list(kept.values()), Stage(name="convert", kept=len(kept), drops=tuple(drops))


def confirm(items: Iterable[tuple[Item, dict[str, Label]]]) -> tuple[list[Item], Stage]:
    """Keep the items whose labels the verifier reproduced, with the failed checks it measured."""
    kept: list[Item] = []
    drops = []
    for (task, panel), labels in items:
        drop = _objection(panel, labels)
        if drop is None:
            kept.append((task, relabelled(panel, labels)))
        else:
            drops.append(drop)
    return kept, Stage(name="verify", kept=len(kept), drops=tuple(drops))


def split_of(seed: int, task_id: str) -> Split:
    """Choose a split by a seeded hash of the task id: about 40, 15, 15 and 30 of 100."""
    point = seed_of(seed, "split", task_id) / 2**31
    for name, share in SHARES:
        if point < share:
            return name
        point -= share
    return "test"


def plain_id(text: str) -> str:
    """Spell a source's task id as ours: `humaneval/HumanEval/0` becomes `humaneval-0`."""
    words = re.findall(r"[a-z0-9._]+", text.lower())
    unique = [word for i, word in enumerate(words) if word not in words[:i]]
    return "-".join(unique)[:96]


def _convert_one(name: str, raw: dict[str, Any], settings: ConversionSettings) -> Item | Dropped:
    try:
        record = PanelRecord.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        return Dropped(task_id=name, reason="malformed record", detail=f"{where}: {first['msg']}")
    fault = _fault(record, settings)
    if fault:
        return Dropped(task_id=name, reason=fault)
    try:
        return _item(record, settings)
    except (SubmissionError, SyntaxError, ValueError, IndexError) as error:
        line = " ".join(str(error).split())
        return Dropped(task_id=name, reason="malformed record", detail=line)


def _item(record: PanelRecord, settings: ConversionSettings) -> Item:
    task_id = plain_id(record.task_id)
    full = record.panel.full and record.panel.verified
    implementations = _implementations(record, full)
    task = Task(
        task_id=task_id,
        source=record.source,
        family=task_id,
        split=split_of(settings.seed, task_id) if full else "train",
        language=record.language,
        instruction=_instruction(record),
        program=implementations[0].program,
    )
    panel = Panel(
        task_id=task_id,
        implementations=tuple(implementations),
        prelude=_prelude(record),
        checks=tuple(Check(check_id=_check_id(c.id), code=c.check) for c in record.checks),
    )
    return task, panel


def _fault(record: PanelRecord, settings: ConversionSettings) -> str:
    full = record.panel.full and record.panel.verified
    valid, invalid = len(record.panel.correct_idx), len(record.panel.incorrect_idx)
    if record.language != "python":
        return f"language {record.language} has no verifier"
    if not record.checks:
        return "no checks"
    if not full and settings.signal == "drop":
        return "no full panel" if not record.panel.full else "panel not verified"
    if full and (valid, invalid) != (4, 5):
        return f"panel has {valid} valid and {invalid} invalid programs, not 4 and 5"
    if record.initial_buggy is not None and record.initial_buggy not in record.incorrect:
        return "initial state without a label"
    return ""


def _implementations(record: PanelRecord, full: bool) -> list[Implementation]:
    every_check = tuple(check.id for check in record.checks)

    def made(name: str, kind: Kind, source: str, failed: Sequence[int], origin: str) -> Any:
        text = (record.context_header or "") + source
        return Implementation(
            implementation_id=name,
            kind=kind,
            program=Tree.of({record.module_file: text}),
            failed_checks=tuple(map(_check_id, failed)),
            origin=origin,
        )

    if record.initial_buggy is None:
        panel = [made("b", "initial", record.initial_stub, every_check, "stub")]
    else:
        row = record.incorrect.index(record.initial_buggy)
        failed = record.incorrect_failed_checks[row]
        origin = _origin(record.incorrect_solvers, row)
        panel = [made("b", "initial", record.initial_buggy, failed, origin)]
    panel.append(made("g", "reference", record.gold, (), record.gold_source))
    if not full:
        return panel
    for i, row in enumerate(record.panel.correct_idx, 1):
        origin = _origin(record.correct_solvers, row)
        panel.append(made(f"v{i}", "valid", record.correct[row], (), origin))
    for i, row in enumerate(record.panel.incorrect_idx, 1):
        origin = _origin(record.incorrect_solvers, row)
        failed = record.incorrect_failed_checks[row]
        panel.append(made(f"i{i}", "invalid", record.incorrect[row], failed, origin))
    return panel


def _origin(solvers: Sequence[Sequence[str]], row: int) -> str:
    names = list(solvers[row]) if row < len(solvers) else []
    more = f" and {len(names) - SHOWN_ORIGINS} more" if len(names) > SHOWN_ORIGINS else ""
    return ", ".join(names[:SHOWN_ORIGINS]) + more


def _instruction(record: PanelRecord) -> str:
    return (
        f"{record.instruction.strip()}\n\n"
        f"The program is the module `{record.module_file}`; "
        f"what is asked for is its `{record.entry_point}`.\n"
    )


def _prelude(record: PanelRecord) -> str:
    """Imports for the checks: the source's own, then from the program only what checks name."""
    module = record.module_file.removesuffix(".py").replace("/", ".")
    known = _names_bound(record.context_header or "") | _names_bound(record.check_prelude)
    used = {record.entry_point}
    for check in record.checks:
        names = [n for n in ast.walk(ast.parse(check.check)) if isinstance(n, ast.Name)]
        used |= {n.id for n in names} - {n.id for n in names if isinstance(n.ctx, ast.Store)}
    wanted = sorted(n for n in used - known if not hasattr(builtins, n) or n == record.entry_point)
    return (
        f"{record.context_header or ''}from {module} import {', '.join(wanted)}\n"
        f"{record.check_prelude}"
    )


def _names_bound(source: str) -> set[str]:
    bound: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.alias):
            bound.add(node.asname or node.name.split(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    return bound


def _check_id(number: int) -> str:
    return f"c{number}"


def _objection(panel: Panel, labels: dict[str, Label]) -> Dropped | None:
    """Why an item may not stay, worst first: no trust in g or b, no label, a wrong label."""
    kinds = {item.kind: item.implementation_id for item in panel.implementations}
    reference, initial = labels[kinds["reference"]], labels[kinds["initial"]]
    reason = ""
    if reference.verdict == "invalid":
        reason = "reference fails"
    elif initial.verdict == "valid":
        reason = "initial state passes all checks"
    if reason:
        failed = ", ".join(reference.failed_checks[:3])
        return Dropped(task_id=panel.task_id, reason=reason, detail=failed)
    if any(label.verdict == "flaky" for label in labels.values()):
        return Dropped(
            task_id=panel.task_id, reason="flaky", detail="; ".join(doubts(panel, labels))
        )
    unsure = doubts(panel, labels)
    if unsure:
        return Dropped(task_id=panel.task_id, reason="no label", detail=unsure[0])
    for item in panel.implementations:
        good, label = item.kind in ("reference", "valid"), labels[item.implementation_id]
        if good == bool(label.failed_checks):
            line = contradiction(item, label)
            return Dropped(task_id=panel.task_id, reason="label contradicted", detail=line)
    return None
