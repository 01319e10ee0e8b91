"""The hidden half of a benchmark item. Nothing under `rsi.helix` or `evolution` may import this."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from rsi.digest import digest_of
from rsi.prism.outcome import Kind
from rsi.prism.tree import Tree
from rsi.wire import Record


class Check(Record):
    """One executable check of the verifier: `code` raises unless the program is right."""

    check_id: str
    code: str


class Implementation(Record):
    """One program of the panel, with the checks it failed when it was verified."""

    implementation_id: str
    kind: Kind
    program: Tree
    failed_checks: tuple[str, ...] = ()
    origin: str = ""


class Panel(Record):
    """Initial state b, reference g, other valid and invalid implementations of one task."""

    task_id: str
    implementations: tuple[Implementation, ...]
    prelude: str = ""
    checks: tuple[Check, ...] = Field(default=(), repr=False)

    @model_validator(mode="after")
    def _labels_hold(self) -> Self:
        kinds = [i.kind for i in self.implementations]
        if kinds.count("initial") != 1 or kinds.count("reference") != 1:
            raise ValueError("a panel has one initial state and one reference")
        for item in self.implementations:
            good = item.kind in ("reference", "valid")
            if self.checks and good == bool(item.failed_checks):
                raise ValueError(
                    f"{item.implementation_id} is labelled {item.kind} "
                    f"but failed {len(item.failed_checks)} checks"
                )
        return self

    def signal(self) -> Panel:
        """The panel {b, g} on which JSF equals RAR: what a training task is judged on."""
        kept = [i for i in self.implementations if i.kind in ("initial", "reference")]
        return self.updated(implementations=tuple(kept))

    @property
    def digest(self) -> str:
        return digest_of(
            [[i.implementation_id, i.kind, i.program.digest] for i in self.implementations]
        )
