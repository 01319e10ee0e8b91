"""Verdicts of cells and outcomes of suites: the only things scores are made of."""

from __future__ import annotations

from enum import StrEnum
from math import prod
from typing import Literal, Self

from pydantic import Field, model_validator

from rsi.ports import Isolation
from rsi.wire import Record

Kind = Literal["initial", "reference", "valid", "invalid"]


class State(StrEnum):
    """The result state of one cell, from the wait status that the host saw."""

    ACCEPT = "ACCEPT"
    REJECT = "REJECT"
    SUITE_ERROR = "SUITE_ERROR"
    TIMEOUT = "TIMEOUT"
    RESOURCE = "RESOURCE"
    TAMPER = "TAMPER"
    INFRA = "INFRA"


class Reason(StrEnum):
    """Why a suite rejected, read from its output: diagnostics, never part of the verdict."""

    ASSERTION = "assertion"
    IMPORT = "import"
    COLLECTION = "collection"
    CRASH = "crash"
    UNKNOWN = "unknown"


class Verdict(Record):
    """One suite on one program state; `reason` is set exactly when the state is REJECT."""

    state: State
    reason: Reason | None = None
    detail: str = ""
    output: str = ""
    wall_seconds: float = Field(0.0, ge=0)
    isolation: Isolation

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if (self.reason is not None) != (self.state is State.REJECT):
            raise ValueError("a reason belongs to REJECT and to nothing else")
        return self

    @property
    def accepts(self) -> bool:
        """a(p) of TestPrism: only a clean ACCEPT counts."""
        return self.state is State.ACCEPT

    @property
    def rejects(self) -> bool:
        """r(p) of TestPrism: only a REJECT counts."""
        return self.state is State.REJECT

    @property
    def rejects_strictly(self) -> bool:
        """Twin of `rejects` in which only failed assertions count."""
        return self.state is State.REJECT and self.reason is Reason.ASSERTION


class CellResult(Record):
    """The verdict on one implementation of a panel."""

    implementation_id: str
    kind: Kind
    verdict: Verdict


class Outcome(Record):
    """One suite on one task's panel: exactly one initial state and one reference.

    F = r(b)·a(g) and S = r(b)·∏ a(V)·∏ r(I) with V including g (TestPrism, page 2);
    on the panel {b, g} S equals F. INFRA cells make the outcome incomplete: no score.
    """

    task_id: str
    family: str
    source: str
    suite_digest: str
    cells: tuple[CellResult, ...]

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        kinds = [cell.kind for cell in self.cells]
        if kinds.count("initial") != 1 or kinds.count("reference") != 1:
            raise ValueError("a panel has one initial state and one reference")
        if len({cell.implementation_id for cell in self.cells}) != len(self.cells):
            raise ValueError("an implementation is judged once")
        return self

    def of(self, *kinds: Kind) -> tuple[Verdict, ...]:
        """The verdicts on implementations of some kinds."""
        return tuple(cell.verdict for cell in self.cells if cell.kind in kinds)

    @property
    def complete(self) -> bool:
        return all(cell.verdict.state is not State.INFRA for cell in self.cells)

    @property
    def f(self) -> int:
        """F_i: rejects the initial state and accepts the reference."""
        return int(self.of("initial")[0].rejects and self.of("reference")[0].accepts)

    @property
    def s(self) -> int:
        """S_i: right about every implementation of the panel."""
        accepted = all(v.accepts for v in self.of("reference", "valid"))
        rejected = all(v.rejects for v in self.of("initial", "invalid"))
        return int(accepted and rejected)

    @property
    def s_strict(self) -> int:
        """Twin of S_i in which only assertion-class rejections count."""
        accepted = all(v.accepts for v in self.of("reference", "valid"))
        return int(accepted and all(v.rejects_strictly for v in self.of("initial", "invalid")))

    @property
    def f_strict(self) -> int:
        """Twin of F_i in which only assertion-class rejections count."""
        return prod(
            (
                self.of("initial")[0].rejects_strictly,
                self.of("reference")[0].accepts,
            )
        )

    @property
    def a(self) -> float | None:
        """A_i: share accepted of the other valid implementations (g apart); None without any."""
        verdicts = self.of("valid")
        return sum(v.accepts for v in verdicts) / len(verdicts) if verdicts else None

    @property
    def r(self) -> float | None:
        """R_i: share rejected of the invalid implementations; None without any."""
        verdicts = self.of("invalid")
        return sum(v.rejects for v in verdicts) / len(verdicts) if verdicts else None
