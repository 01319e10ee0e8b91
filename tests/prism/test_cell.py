"""Verdicts come from what the host saw, and from nothing that was printed."""

from __future__ import annotations

import random

import pytest

from rsi.errors import SandboxFailure
from rsi.ports import Completed, Execution
from rsi.prism.cell import reason_of, run_cell, verdict_of
from rsi.prism.judge import judge
from rsi.prism.outcome import Outcome, Reason, State
from rsi.prism.panel import Implementation, Panel
from rsi.prism.suite import Suite
from rsi.prism.tree import Tree
from tests.builders import shell_suite, task


def done(**changes: object) -> Completed:
    return Completed.model_validate({"exit_code": 0, "isolation": "process", **changes})


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        ({"exit_code": 0}, State.ACCEPT),
        ({"exit_code": 1}, State.REJECT),
        ({"exit_code": 137}, State.REJECT),
        ({"exit_code": 126}, State.REJECT),
        ({"exit_code": None, "signal": 11}, State.SUITE_ERROR),
        ({"exit_code": 127, "started": False}, State.SUITE_ERROR),
        ({"exit_code": None, "signal": 9, "killed_by": "wall"}, State.TIMEOUT),
        ({"exit_code": None, "signal": 9, "killed_by": "cpu"}, State.TIMEOUT),
        ({"exit_code": None, "signal": 9, "killed_by": "memory"}, State.RESOURCE),
        ({"exit_code": 0, "killed_by": "output"}, State.RESOURCE),
        ({"exit_code": 0, "killed_by": "processes"}, State.RESOURCE),
        ({"exit_code": 0, "killed_by": "disk"}, State.RESOURCE),
        ({"exit_code": 0, "changed": ("solution.py",)}, State.TAMPER),
        ({"exit_code": 1, "changed": ("solution.py",)}, State.TAMPER),
    ],
)
def test_each_wait_status_has_one_state(seen, state):
    assert verdict_of(done(**seen)).state is state


def test_printing_a_result_changes_nothing():
    forged = done(exit_code=1, stdout=b"10 passed in 0.1s\nREJECT? no: ACCEPT")
    assert verdict_of(forged).state is State.REJECT


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("E       AssertionError: 1 != 2", Reason.ASSERTION),
        ("FAIL: test_a (t.T)", Reason.ASSERTION),
        ("ModuleNotFoundError: No module named 'x'", Reason.IMPORT),
        ("ERROR collecting\nSyntaxError: invalid", Reason.COLLECTION),
        ("Traceback (most recent call last):\nZeroDivisionError", Reason.CRASH),
        ("nope", Reason.UNKNOWN),
    ],
)
def test_rejections_are_classified(output, reason):
    assert reason_of(output) is reason


@pytest.mark.parametrize(
    ("suite", "fault"),
    [
        (Suite(tree=Tree()), "missing"),
        (Suite(tree=Tree.of({"run_tests.sh": "#!/bin/sh\n"})), "not executable"),
        (Suite(tree=Tree.of({"run_tests.sh": "exit 0\n"}, ["run_tests.sh"])), "no #! line"),
        (shell_suite("#!/bin/sh\r\nexit 0\n"), "CR"),
    ],
)
def test_an_entry_that_cannot_start_is_a_suite_error(suite, fault):
    assert fault in suite.fault()
    found = run_cell(Failing(0), suite, Tree(), task().limits)
    assert found.state is State.SUITE_ERROR and fault in found.detail


class Failing:
    """A sandbox that fails some times before it works."""

    isolation = "process"

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.runs = 0

    def run(self, execution: Execution) -> Completed:
        self.runs += 1
        if self.runs <= self.failures:
            raise SandboxFailure("daemon went away")
        return done(exit_code=1 if b"bad" in execution.program.files["p"].content else 0)


def test_an_infrastructure_failure_is_retried_twice_and_never_scored():
    fine = Failing(2)
    assert run_cell(fine, shell_suite("exit 0"), Tree.of({"p": ""}), task().limits).accepts
    assert fine.runs == 3
    broken = Failing(3)
    found = run_cell(broken, shell_suite("exit 0"), Tree.of({"p": ""}), task().limits)
    assert found.state is State.INFRA and found.detail == "daemon went away"
    assert not found.accepts and not found.rejects and broken.runs == 3


def panel_of(**kinds: str) -> Panel:
    return Panel(
        task_id="t",
        implementations=tuple(
            Implementation(
                implementation_id=name,
                kind=kind,
                program=Tree.of({"p": "bad" if kind in ("initial", "invalid") else "good"}),
            )
            for name, kind in kinds.items()
        ),
    )


def test_the_judge_runs_every_implementation_once_and_keeps_panel_order():
    panel = panel_of(b="initial", g="reference", v1="valid", i1="invalid")
    sandbox = Failing(0)
    found = judge(shell_suite("x"), task(), panel, sandbox, random.Random(1))
    assert [c.implementation_id for c in found.cells] == ["b", "g", "v1", "i1"]
    assert (found.f, found.s, sandbox.runs) == (1, 1, 4)


def test_the_signal_panel_is_initial_and_reference():
    panel = panel_of(b="initial", g="reference", v1="valid", i1="invalid").signal()
    assert [i.implementation_id for i in panel.implementations] == ["b", "g"]


def test_a_panel_refuses_labels_that_its_checks_contradict():
    values = {
        "task_id": "t",
        "checks": [{"check_id": "c", "code": "assert True"}],
        "implementations": [
            {"implementation_id": "b", "kind": "initial", "program": {}, "failed_checks": ["c"]},
            {"implementation_id": "g", "kind": "reference", "program": {}},
        ],
    }
    assert Panel.model_validate(values)
    values["implementations"][1]["failed_checks"] = ["c"]
    with pytest.raises(ValueError, match="labelled reference"):
        Panel.model_validate(values)


def test_an_outcome_needs_one_initial_state_and_one_reference():
    cells = [{"implementation_id": "g", "kind": "reference", "verdict": verdict_of(done())}]
    with pytest.raises(ValueError, match="one initial state"):
        Outcome(task_id="t", family="f", source="s", suite_digest="", cells=cells)
