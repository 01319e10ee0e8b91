"""Small builders for records that many tests need."""

from __future__ import annotations

from rsi.prism.outcome import CellResult, Kind, Outcome, Reason, State, Verdict
from rsi.prism.suite import Suite
from rsi.prism.task import Task
from rsi.prism.tree import Tree


def verdict(state: str = "ACCEPT", reason: str = "assertion") -> Verdict:
    """A verdict of one state; REJECT carries a reason."""
    known = State(state)
    return Verdict(
        state=known,
        reason=Reason(reason) if known is State.REJECT else None,
        isolation="process",
    )


def outcome(
    task_id: str = "t",
    family: str = "",
    *,
    b: str = "REJECT",
    g: str = "ACCEPT",
    valid: str = "",
    invalid: str = "",
    reason: str = "assertion",
) -> Outcome:
    """An outcome from short words: `valid="AAR"` is two accepts and one reject, T a time-out."""
    short = {"A": "ACCEPT", "R": "REJECT", "T": "TIMEOUT", "I": "INFRA"}

    def cell(name: str, kind: Kind, state: str) -> CellResult:
        return CellResult(implementation_id=name, kind=kind, verdict=verdict(state, reason))

    cells = [cell("b", "initial", b), cell("g", "reference", g)]
    cells += [cell(f"v{i}", "valid", short[c]) for i, c in enumerate(valid, 1)]
    cells += [cell(f"i{i}", "invalid", short[c]) for i, c in enumerate(invalid, 1)]
    return Outcome(
        task_id=task_id,
        family=family or task_id,
        source="made",
        suite_digest="0" * 64,
        cells=tuple(cells),
    )


def task(task_id: str = "t", program: str = "def f(x):\n    return x\n", **changes: object) -> Task:
    """A small Python task whose module is solution.py."""
    values: dict[str, object] = {
        "task_id": task_id,
        "source": "made",
        "family": "made",
        "split": "train",
        "instruction": "f returns its argument doubled. `f(2)` -> `4`",
        "program": Tree.of({"solution.py": program}),
    }
    return Task.model_validate({**values, **changes})


def shell_suite(script: str, entry: str = "run_tests.sh") -> Suite:
    """A suite of one executable shell script."""
    text = script if script.startswith("#!") else "#!/bin/sh\n" + script
    return Suite(tree=Tree.of({entry: text}, executable=[entry]), entry=entry)
