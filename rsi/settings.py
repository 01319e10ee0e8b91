"""The settings of every command: strict, bounded, frozen.

The entry points alone use this module; each passes sub-settings on, never the whole.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from evolution.plan import EvolutionPlan
from rsi.budget import Budget, Caps
from rsi.records import Workflow
from rsi.strategy import Strategy
from rsi.wire import Record
from workers.benchmark import BenchmarkSettings
from workers.llm import ModelProfile

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


class SandboxSettings(Record):
    """Which isolation runs hostile code; `auto` takes the first that really works."""

    name: Literal["auto", "bubblewrap", "docker", "process"] = "auto"


class ClusterSettings(Record):
    """Where rollouts run: Ray (`local`, or an existing `HOST:PORT`) or threads without Ray.

    `slots` rollouts run at once (0 = one per core) and at most `in_flight` are submitted.
    """

    kind: Literal["ray", "threads"] = "ray"
    address: str = "local"
    slots: int = Field(0, ge=0, le=4_096)
    in_flight: int = Field(0, ge=0, le=65_536)

    @property
    def workers(self) -> int:
        return self.slots or (os.cpu_count() or 1)

    @property
    def window(self) -> int:
        return self.in_flight or 2 * self.workers


class TrackingSettings(Record):
    """MLflow: an empty `uri` is a sqlite file in the runs directory."""

    enabled: bool = True
    uri: str = ""
    experiment: str = Field("testhelix-rsi", min_length=1)


class ReflectorSettings(Record):
    """Who diagnoses: `symptoms` needs no model, `model` asks the profile in `model`."""

    kind: Literal["symptoms", "model"] = "symptoms"
    model: ModelProfile | None = None


class PlaySettings(Record):
    """What every command that plays rollouts shares."""

    runs_dir: Path = Path("runs")
    run_id: str | None = Field(None, coerce_numbers_to_str=True)
    seed: int = Field(42, ge=0, lt=2**31)
    benchmark: BenchmarkSettings = BenchmarkSettings()
    model: ModelProfile
    slots: tuple[ModelProfile, ...] = ()
    sandbox: SandboxSettings = SandboxSettings()
    cluster: ClusterSettings = ClusterSettings()
    tracking: TrackingSettings = TrackingSettings()
    workflow: Workflow = Workflow()
    caps: Caps = Caps()

    @field_validator("run_id")
    @classmethod
    def _plain_name(cls, value: str | None) -> str | None:
        if value is not None and not RUN_ID.fullmatch(value):
            raise ValueError(f"must match {RUN_ID.pattern}")
        return value

    @field_validator("runs_dir")
    @classmethod
    def _a_folder(cls, value: Path) -> Path:
        if value == Path() or len(str(value)) > 1_000 or not str(value).isprintable():
            raise ValueError("must name a folder")
        return value

    @property
    def profiles(self) -> tuple[ModelProfile, ...]:
        """The model of each agent slot: `slots` when given, else the one model."""
        return self.slots or (self.model,)


class TrainSettings(PlaySettings):
    """Everything `python -m rsi.train` takes."""

    strategy: Strategy = Strategy()
    budget: Budget
    evolution: EvolutionPlan
    reflector: ReflectorSettings = ReflectorSettings()


class EvaluateSettings(PlaySettings):
    """Everything `python -m rsi.evaluate` takes; `frozen` is the `strategy=FILE`
    of the command line, `tasks` = 0 the whole split."""

    frozen: Path
    split: Literal["train", "selection", "release", "test"] = "test"
    tasks: int = Field(0, ge=0)
    repetitions: int = Field(1, ge=1, le=20)
    allow_changes: bool = False


class ExportSettings(Record):
    """Everything `python -m rsi.export` takes."""

    run: str
    runs_dir: Path = Path("runs")
    out: Path | None = None


class ReportSettings(Record):
    """Everything `python -m rsi.report` takes; `rebuild` makes the projections anew."""

    run: str
    runs_dir: Path = Path("runs")
    rebuild: bool = False
    tracking: TrackingSettings = TrackingSettings()
