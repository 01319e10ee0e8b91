"""What verifier runs say about one implementation, and the label that follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from rsi.wire import Record

Verdict = Literal["valid", "invalid", "flaky", "unlabelled"]


class VerifierRun(Record):
    """One run of all checks: the checks that did not pass, how many reported, or an error.

    Skipped checks and checks that ran into their time limit are among `failed`.
    """

    failed: tuple[str, ...] = ()
    collected: int = Field(0, ge=0)
    error: str = ""


class Label(Record):
    """One implementation's label with the runs it is derived from."""

    verdict: Verdict
    failed_checks: tuple[str, ...] = ()
    runs: tuple[VerifierRun, ...] = ()
    reason: str = ""


def label_of(runs: Sequence[VerifierRun], checks: int) -> Label:
    """Derive the label: all checks pass = valid, any fails = invalid, runs disagree = flaky.

    No label without runs, without checks, when a run errored or reported another number of
    checks than the `checks` of the verifier (page 5: missing checks never count as a pass).
    """
    kept = tuple(runs)
    trouble = _trouble(kept, checks)
    if trouble:
        return Label(verdict="unlabelled", runs=kept, reason=trouble)
    failed = {frozenset(run.failed) for run in kept}
    if len(failed) > 1:
        unsteady = sorted(frozenset.union(*failed) - frozenset.intersection(*failed))
        return Label(verdict="flaky", runs=kept, reason=f"runs disagree on {', '.join(unsteady)}")
    verdict: Verdict = "invalid" if kept[0].failed else "valid"
    return Label(verdict=verdict, failed_checks=kept[0].failed, runs=kept)


def _trouble(runs: tuple[VerifierRun, ...], checks: int) -> str:
    if not checks:
        return "the verifier has no checks"
    if not runs:
        return "never run"
    for run in runs:
        if run.error:
            return run.error
        if run.collected != checks:
            return f"{run.collected} of {checks} checks reported"
    return ""
