"""The trusted verifier: every check of a panel on every implementation, in a sandbox.

A program can neither print results (it has no way to the report's stream, and lines need the
run's key) nor end a check early and be believed. A check that must fail is hidden among the
real ones, so a program that answers "passed" for itself is found out. Not covered: a program
that reads the check's own source from its process and behaves well for exactly that check;
and values that compare equal to everything, which a check must guard against itself.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from importlib.resources import files

from pydantic import Field

from rsi.errors import SandboxFailure
from rsi.ports import Completed, Execution, Sandbox
from rsi.prism.build.driver import KEY_FILE
from rsi.prism.build.labels import Label, VerifierRun, label_of
from rsi.prism.panel import Implementation, Panel
from rsi.prism.task import Limits
from rsi.prism.tree import Tree
from rsi.wire import Record

SANDBOX_RETRIES = 2
WALL_FACTOR = 4
_ENTRY = "verify.sh"
# PYTHONHASHSEED must reach the program, so no -I; -P and -s keep stray modules out
_SCRIPT = '#!/bin/sh\nexec python3 -s -P "$TP_SUBMISSION/driver.py"\n'
_MIB = 1024 * 1024
_LINE_BYTES = 96


class VerifierLimits(Record):
    """Bounds of one run: CPU seconds per check, time-outs before the rest is skipped, memory.

    A check may take WALL_FACTOR times its CPU seconds by the clock, so that a busy machine does
    not turn right programs into wrong ones.
    """

    cpu_seconds: int = Field(2, ge=1, le=120)
    max_timeouts: int = Field(10, ge=1)
    memory_mib: int = Field(512, ge=128)
    start_seconds: float = Field(30.0, gt=0)

    @property
    def wall_seconds(self) -> int:
        return self.cpu_seconds * WALL_FACTOR

    def of_sandbox(self, checks: int) -> Limits:
        """The sandbox's limits for a run of some checks."""
        slow = min(checks, self.max_timeouts)
        return Limits(
            wall_seconds=min(3_600.0, self.start_seconds + self.wall_seconds * slow),
            cpu_seconds=min(3_600.0, self.start_seconds + (self.cpu_seconds + 1) * slow),
            memory_mib=self.memory_mib,
            output_bytes=8_192 + _LINE_BYTES * (checks + 2),
        )


def verify(
    panel: Panel, sandbox: Sandbox, runs: int = 3, limits: VerifierLimits | None = None
) -> dict[str, Label]:
    """Run all checks on every implementation `runs` times and derive labels by implementation.

    The r-th run has PYTHONHASHSEED=r, so that an order-dependent program shows as flaky.
    """
    bounds = limits or VerifierLimits()
    return {
        item.implementation_id: label_of(
            [verifier_run(panel, item.program, sandbox, bounds, r) for r in range(runs)],
            len(panel.checks),
        )
        for item in panel.implementations
    }


def verifier_run(
    panel: Panel, program: Tree, sandbox: Sandbox, limits: VerifierLimits, repetition: int = 0
) -> VerifierRun:
    """Run all checks of a panel on a program once, in one sandbox execution."""
    if not panel.checks:
        return VerifierRun(error="the verifier has no checks")
    key = secrets.token_hex(24)
    decoy = secrets.randbelow(len(panel.checks) + 1)
    execution = Execution(
        program=program.with_file(KEY_FILE, key, executable=False),
        submission=_submission(panel, decoy, limits),
        argv=(_ENTRY,),
        entry_in_submission=True,
        limits=limits.of_sandbox(len(panel.checks) + 1),
        environment={"PYTHONHASHSEED": str(repetition)},
    )
    trouble = ""
    for _ in range(1 + SANDBOX_RETRIES):
        try:
            return _read(sandbox.run(execution), panel, key, decoy)
        except SandboxFailure as error:
            trouble = str(error)
    return VerifierRun(error=f"sandbox: {trouble}")


def contradictions(panel: Panel, labels: Mapping[str, Label]) -> tuple[str, ...]:
    """List the implementations whose shipped label the verifier contradicts, one line each."""
    lines = (
        contradiction(item, labels[item.implementation_id])
        for item in panel.implementations
        if item.implementation_id in labels
    )
    return tuple(f"{panel.task_id}: {line}" for line in lines if line)


def doubts(panel: Panel, labels: Mapping[str, Label]) -> tuple[str, ...]:
    """List the implementations that got no label, flaky ones among them, one line each."""
    lines = []
    for item in panel.implementations:
        label = labels.get(item.implementation_id)
        reason = "not verified" if label is None else label.reason
        if label is None or label.verdict in ("flaky", "unlabelled"):
            lines.append(f"{panel.task_id}: {item.implementation_id}: {reason}")
    return tuple(lines)


def relabelled(panel: Panel, labels: Mapping[str, Label]) -> Panel:
    """Copy a panel with the failed checks that the verifier measured."""
    return panel.updated(
        implementations=tuple(
            item.updated(failed_checks=labels[item.implementation_id].failed_checks)
            for item in panel.implementations
        )
    )


def contradiction(item: Implementation, label: Label) -> str:
    """Say how the verifier's label contradicts the shipped one; empty when it does not."""
    if label.verdict in ("flaky", "unlabelled"):
        return ""
    failed, shipped = label.failed_checks, item.failed_checks
    start = f"{item.implementation_id} is labelled {item.kind} but"
    if item.kind in ("reference", "valid"):
        return f"{start} fails {len(failed)} checks: {_some(failed)}" if failed else ""
    if not failed:
        return f"{start} passes all checks"
    if set(failed) == set(shipped):
        return ""
    name = item.implementation_id
    return f"{name} is shipped with failed checks {_some(shipped)} but fails {_some(failed)}"


def _some(checks: tuple[str, ...]) -> str:
    return ", ".join(checks[:3]) + (f" and {len(checks) - 3} more" if len(checks) > 3 else "")


def _submission(panel: Panel, decoy: int, limits: VerifierLimits) -> Tree:
    jobs = [check.code for check in panel.checks]
    # the decoy does what a real check does and then fails
    model = jobs[min(decoy, len(jobs) - 1)]
    jobs.insert(decoy, f"{model}\nraise AssertionError\n")
    plan = {
        "prelude": panel.prelude,
        "jobs": jobs,
        "decoy": decoy,
        "cpu_seconds": limits.cpu_seconds,
        "wall_seconds": limits.wall_seconds,
        "max_timeouts": limits.max_timeouts,
        "memory_bytes": (limits.memory_mib - 64) * _MIB,
    }
    driver = (files("rsi.prism.build") / "driver.py").read_text("utf-8")
    return Tree.of(
        {_ENTRY: _SCRIPT, "driver.py": driver, "jobs.json": json.dumps(plan)}, executable=[_ENTRY]
    )


def _read(done: Completed, panel: Panel, key: str, decoy: int) -> VerifierRun:
    if done.killed_by is not None:
        return VerifierRun(error=f"the run passed its limit: {done.killed_by}")
    if not done.started or done.exit_code != 0:
        seen = f"exit {done.exit_code}" if done.exit_code is not None else f"signal {done.signal}"
        return VerifierRun(error=f"the verifier did not finish: {seen}")
    states = _states(done.stdout, key, len(panel.checks) + 1)
    if states is None:
        return VerifierRun(error="the verifier's report is not complete and unique")
    if states.pop(decoy) == "pass":
        return VerifierRun(error="the program reports checks as passed by itself")
    failed = tuple(c.check_id for c, s in zip(panel.checks, states, strict=True) if s != "pass")
    return VerifierRun(failed=failed, collected=len(states))


def _states(stdout: bytes, key: str, jobs: int) -> list[str] | None:
    """The jobs' states in order; None unless every index came once, then the end line."""
    line = re.compile(rb"%s (?:(\d{1,6}) (pass|fail|timeout|skipped)|(end))" % key.encode())
    found = [line.fullmatch(text) for text in stdout.split(b"\n") if text.startswith(key.encode())]
    states: list[str] = []
    for match in found[:-1]:
        if match is None or match[1] is None or int(match[1]) != len(states):
            return None
        states.append(match[2].decode())
    ended = bool(found) and found[-1] is not None and found[-1][3] == b"end"
    return states if ended and len(states) == jobs else None
