"""Settings: Hydra composes them, strict pydantic decides, errors are one line.

The entry points alone use this module; each passes sub-settings on, never the whole.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import Field, ValidationError, field_validator

from evolution.plan import EvolutionPlan
from rsi.budget import Budget, Caps
from rsi.cli import one_line
from rsi.errors import SettingsError
from rsi.records import Workflow
from rsi.strategy import Strategy, explain
from rsi.wire import Record
from workers.benchmark import BenchmarkSettings
from workers.llm import ModelProfile

# the sibling of this package: a folder named conf in the working directory cannot shadow it
CONF = Path(__file__).resolve().parent.parent / "conf"
RUN_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")
S = TypeVar("S", bound=Record)


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
    run_id: str | None = None
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
        if value is not None and not RUN_ID.match(value):
            raise ValueError(f"must match {RUN_ID.pattern}")
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
    """Everything `python -m rsi.evaluate` takes; `tasks` = 0 is the whole split."""

    strategy: Path
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


def choices(group: str) -> list[str]:
    """The named values of a configuration group."""
    return sorted(p.stem for p in (CONF / group).glob("*.yaml"))


def load(config_name: str, model: type[S], argv: Sequence[str]) -> S:
    """Compose and validate settings; raises SettingsError with one line, writes nothing."""
    overrides = [_spelled(config_name, argument) for argument in argv]
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
            config = compose(config_name=config_name, overrides=overrides)
        values: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise SettingsError(_hydra_line(error)) from None
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise SettingsError(explain(error)) from None


def require_budget(argv: Sequence[str]) -> None:
    """Raise SettingsError naming the choices unless a budget was said."""
    if not any(re.match(r"\+{0,2}budget[=.]", argument) for argument in argv):
        named = " or ".join(f"+budget={name}" for name in choices("budget"))
        raise SettingsError(f"no budget given; say {named}")


def _spelled(config_name: str, argument: str) -> str:
    """Accept `budget=fixed` for `+budget=fixed`, and any LiteLLM name for `model=`."""
    if re.match(r"budget=", argument):
        return "+" + argument
    found = re.match(r"model=(.+)$", argument)
    if found and found[1] not in choices("model"):
        # a name that is no profile of ours is a LiteLLM model name
        return f"model.model={found[1]}"
    if config_name == "evaluate" and argument.startswith("strategy="):
        return "strategy=" + _quoted(argument.partition("=")[2])
    return argument


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w./-]+", text) else "'" + text.replace("'", "\\'") + "'"


def _hydra_line(error: Exception) -> str:
    """Keep what a person needs of Hydra's message: the key, what is wrong, the choices."""
    text = one_line(str(error))
    text = re.sub(r"full_key: \S+|object_type=\S+|Check your defaults list.*$", "", text)
    text = re.sub(
        r"Config search path:.*$|Set the environment variable HYDRA_FULL_ERROR=1.*$", "", text
    )
    return one_line(text) or type(error).__name__


def help_text(command: str, config_name: str, positional: str = "") -> str:
    """What `--help` prints: usage, groups with their choices, and the composed defaults."""
    groups = [d.name for d in sorted(CONF.iterdir()) if d.is_dir() and choices(d.name)]
    lines = [f"usage: python -m {command} {positional}[KEY=VALUE ...]", "", "groups:"]
    lines += [f"  {group}={'|'.join(choices(group))}" for group in groups]
    lines += ["", f"defaults ({config_name}.yaml; any key below can be set as KEY=VALUE):"]
    lines += ["  " + line for line in (CONF / f"{config_name}.yaml").read_text().splitlines()]
    return "\n".join(lines)


def wants_help(argv: Sequence[str]) -> bool:
    """Tell whether the user asked for help."""
    return any(argument in ("-h", "--help", "help") for argument in argv)


def arguments() -> list[str]:
    """The command line without the program's name."""
    return sys.argv[1:]
