"""The records of the on-disk task format (docs/task-format.md) and how their text is read."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from rsi.errors import BenchmarkError
from rsi.prism.build.labels import VerifierRun
from rsi.prism.outcome import Kind
from rsi.prism.panel import Check
from rsi.prism.task import Limits, Split

IMPLEMENTATION_ID = re.compile(r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$")
_SHA256 = r"^([0-9a-f]{64})?$"


class Format(BaseModel):
    """A file of the format: keys in snake_case, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TaskEntry(Format):
    """What the index says of one task; `digest` covers both halves, empty = not checked."""

    split: Split
    family: str = Field(min_length=1)
    source: str = Field(min_length=1)
    digest: str = Field("", pattern=_SHA256)


class DatasetFile(Format):
    """`dataset.json`: the index; `digest` covers the tasks' entries, empty = not checked."""

    name: str = Field(min_length=1, max_length=200)
    version: str = "1"
    seed: int = 0
    splits: dict[Split, int] = Field(default_factory=dict)
    funnel: dict[str, Any] = Field(default_factory=dict)
    thresholds: dict[str, float] = Field(default_factory=dict)
    digest: str = Field("", pattern=_SHA256)
    tasks: dict[str, TaskEntry]


class TaskFile(Format):
    """`tasks/<task_id>/task.yaml`: what is not text or program of the public half."""

    task_id: str
    language: str = "python"
    artifact_dir: str = "submission"
    entry: str = "run_tests.sh"
    image: str = ""
    limits: Limits = Limits()
    program_digest: str = Field("", pattern=_SHA256)
    panel_digest: str = Field("", pattern=_SHA256)


class ImplementationEntry(Format):
    """One implementation; `tree` is its folder below the panel, none for the initial state."""

    implementation_id: str
    kind: Kind
    tree: str = ""
    program_digest: str = Field("", pattern=_SHA256)

    @field_validator("implementation_id")
    @classmethod
    def _plain(cls, value: str) -> str:
        if not IMPLEMENTATION_ID.match(value):
            raise ValueError(f"{value!r} does not match {IMPLEMENTATION_ID.pattern}")
        return value


class PanelFile(Format):
    """`panels/<task_id>/panel.json`."""

    task_id: str
    implementations: tuple[ImplementationEntry, ...]


class LabelEntry(Format):
    """One implementation's failed checks and the verifier runs that they come from."""

    failed_checks: tuple[str, ...] = ()
    runs: tuple[VerifierRun, ...] = ()


class LabelsFile(Format):
    """`panels/<task_id>/labels.json`, by implementation id."""

    labels: dict[str, LabelEntry]


class ProvenanceEntry(Format):
    origin: str = ""


class ProvenanceFile(Format):
    """`panels/<task_id>/provenance.json`, by implementation id."""

    provenance: dict[str, ProvenanceEntry]


class ChecksFile(Format):
    """`panels/<task_id>/verifier/checks.json`."""

    prelude: str = ""
    checks: tuple[Check, ...]

    @field_validator("checks")
    @classmethod
    def _unique(cls, value: tuple[Check, ...]) -> tuple[Check, ...]:
        if len({check.check_id for check in value}) != len(value):
            raise ValueError("check ids are not unique")
        return value


F = TypeVar("F", bound=Format)


def parse(model: type[F], where: str, text: str) -> F:
    """Read a file's text as JSON or, where the name says so, YAML; one BenchmarkError line."""
    try:
        value = yaml.safe_load(text) if where.endswith(".yaml") else json.loads(text)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}: {error.msg}"
        raise BenchmarkError(f"{where}: not JSON: {line}") from None
    except yaml.YAMLError as error:
        raise BenchmarkError(f"{where}: not YAML: {' '.join(str(error).split())}") from None
    except (RecursionError, ValueError) as error:
        raise BenchmarkError(f"{where}: cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise BenchmarkError(f"{where}: holds {type(value).__name__}, not an object of keys")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise BenchmarkError(f"{where}: {_first(error, model)}") from None


def _first(error: ValidationError, model: type[Format]) -> str:
    # an unknown key first: it is most likely a misspelling of the one that is missing
    item = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
    where = ".".join(map(str, item["loc"])) or "value"
    if item["type"] == "extra_forbidden":
        known = ", ".join(model.model_fields) if len(item["loc"]) == 1 else ""
        return f"{where}: unknown key" + (f"; known are {known}" if known else "")
    if item["type"] == "missing":
        return f"{where}: missing"
    return f"{where}: {' '.join(item['msg'].removeprefix('Value error, ').split())}"
