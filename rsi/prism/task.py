"""The public half of a benchmark item: everything an agent may see."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator

from rsi.prism.tree import Tree
from rsi.wire import Record

Split = Literal["train", "selection", "release", "test"]
SPLITS: tuple[Split, ...] = ("train", "selection", "release", "test")
TASK_ID = re.compile(r"^[a-z0-9][a-z0-9._-]{0,95}$")


class Limits(Record):
    """What one cell may use: seconds of wall and CPU time, MiB, processes, kept output bytes."""

    wall_seconds: float = Field(10.0, gt=0, le=3_600)
    cpu_seconds: float = Field(10.0, gt=0, le=3_600)
    memory_mib: int = Field(512, ge=32, le=65_536)
    processes: int = Field(64, ge=4, le=4_096)
    disk_mib: int = Field(64, ge=1, le=65_536)
    output_bytes: int = Field(65_536, ge=1_024, le=16_777_216)


class Task(Record):
    """One benchmark item without its hidden panel.

    `program` is the initial state b; a submission puts its files below `artifact_dir` of the
    workspace, with the executable entry script `entry` (relative to that directory).
    `family` groups siblings, `source` names where the task comes from.
    """

    task_id: str
    source: str
    family: str
    split: Split
    language: str = "python"
    instruction: str = Field(min_length=1)
    program: Tree
    artifact_dir: str = "submission"
    entry: str = "run_tests.sh"
    image: str = ""
    limits: Limits = Limits()

    @field_validator("task_id")
    @classmethod
    def _known_form(cls, value: str) -> str:
        if not TASK_ID.match(value):
            raise ValueError(f"{value!r} does not match {TASK_ID.pattern}")
        return value
