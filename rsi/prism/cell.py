"""A cell: one suite on one program state, run once in a fresh environment."""

from __future__ import annotations

import re

from rsi.errors import SandboxFailure
from rsi.ports import Completed, Execution, Isolation, Sandbox
from rsi.prism.outcome import Reason, State, Verdict
from rsi.prism.suite import Suite
from rsi.prism.task import Limits
from rsi.prism.tree import Tree

INFRA_RETRIES = 2
KEPT_OUTPUT_CHARS = 1_500
_REASONS = (
    (Reason.IMPORT, re.compile(r"\b(ImportError|ModuleNotFoundError)\b")),
    (Reason.COLLECTION, re.compile(r"errors? during collection|SyntaxError|IndentationError")),
    (
        Reason.ASSERTION,
        re.compile(r"\bAssertionError\b|^E +assert |Assertion .* failed|\bFAIL:", re.M),
    ),
    (Reason.CRASH, re.compile(r"Traceback \(most recent call last\)|\w+(Error|Exception)\b")),
)
# exits that mean a limit was hit, and the state each becomes
_LIMIT_STATES = {"wall": State.TIMEOUT, "cpu": State.TIMEOUT}


def run_cell(sandbox: Sandbox, suite: Suite, program: Tree, limits: Limits) -> Verdict:
    """Run a suite on a program and give its verdict; INFRA after two retries, never a guess."""
    fault = suite.fault()
    if fault is not None:
        return Verdict(state=State.SUITE_ERROR, detail=fault, isolation=sandbox.isolation)
    execution = Execution(
        program=program,
        submission=suite.tree,
        argv=(suite.entry,),
        entry_in_submission=True,
        limits=limits,
    )
    trouble = ""
    for _ in range(1 + INFRA_RETRIES):
        try:
            return verdict_of(sandbox.run(execution))
        except SandboxFailure as error:
            trouble = str(error)
    return _infra(trouble, sandbox.isolation)


def verdict_of(done: Completed) -> Verdict:
    """Map what the host saw to a verdict; the output only explains it (page 2's table)."""
    output = (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace").strip()
    reason = None
    if done.killed_by is not None:
        state = _LIMIT_STATES.get(done.killed_by, State.RESOURCE)
        detail = f"limit: {done.killed_by}"
    elif not done.started:
        state, detail = State.SUITE_ERROR, "entry script could not be executed"
    elif done.changed:
        state, detail = State.TAMPER, "changed " + ", ".join(done.changed[:5])
    elif done.exit_code is None:
        state, detail = State.SUITE_ERROR, f"ended by signal {done.signal}"
    elif done.exit_code == 0:
        state, detail = State.ACCEPT, ""
    else:
        state, detail = State.REJECT, f"exit {done.exit_code}"
        reason = reason_of(output)
    return Verdict(
        state=state,
        reason=reason,
        detail=detail,
        output=_tail(output),
        wall_seconds=done.wall_seconds,
        isolation=done.isolation,
    )


def reason_of(output: str) -> Reason:
    """Classify a rejection by what the suite printed; the first class that matches."""
    for reason, pattern in _REASONS:
        if pattern.search(output):
            return reason
    return Reason.UNKNOWN


def _infra(trouble: str, isolation: Isolation) -> Verdict:
    return Verdict(state=State.INFRA, detail=trouble, isolation=isolation)


def _tail(output: str) -> str:
    return output if len(output) <= KEPT_OUTPUT_CHARS else "..." + output[-KEPT_OUTPUT_CHARS:]
