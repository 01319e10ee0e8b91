"""From a command line to settings: Hydra composes, strict pydantic decides, errors are one line."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any, TypeVar, get_args

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from rsi.cli import one_line
from rsi.errors import SettingsError
from rsi.wire import Record, explain

# the sibling of this package: a folder named conf in the working directory cannot shadow it
CONF = Path(__file__).resolve().parent.parent / "conf"
S = TypeVar("S", bound=Record)
# `strategy` is a group of ours, so Hydra would look for a group of that name
# values that are one text, whatever characters it holds
_TEXTS = ("runs_dir", "benchmark.path", "run", "out", "tracking.uri", "model.model")
QUOTES = ("'", '"')
_RENAMED = {"evaluate": ("strategy=", "frozen=")}


def load(config_name: str, model: type[S], argv: Sequence[str]) -> S:
    """Compose and validate settings; raises SettingsError with one line, writes nothing."""
    known = set(_keys(model))
    overrides = [said for argument in argv for said in _spelled(config_name, argument, known)]
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
            config = compose(config_name=config_name, overrides=overrides)
        values: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException, ValueError, TypeError) as error:
        raise SettingsError(_hydra_line(error, config_name, model)) from None
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise SettingsError(explain(error, model)) from None


def require_budget(argv: Sequence[str]) -> None:
    """Raise SettingsError naming the choices unless a budget was said."""
    if not any(re.match(r"\+{0,2}budget=", argument) for argument in argv):
        named = " or ".join(f"+budget={name}" for name in choices("budget"))
        raise SettingsError(f"no budget given; say {named}")


def choices(group: str) -> list[str]:
    """The named values of a configuration group."""
    return sorted(p.stem for p in (CONF / group).glob("*.yaml"))


def help_text(command: str, config_name: str, positional: str = "") -> str:
    """What `--help` prints: usage, groups with their choices, and the composed defaults."""
    text = (CONF / f"{config_name}.yaml").read_text()
    groups = [d.name for d in sorted(CONF.iterdir()) if d.is_dir() and choices(d.name)]
    used = [g for g in groups if re.search(rf"^  - {g}:", text, re.M)]
    if config_name == "config":
        used.append("budget")
    lines = [f"usage: python -m {command} {positional}[KEY=VALUE ...]"]
    if used:
        lines += ["", "groups (model= also takes any LiteLLM name):"] if "model" in used else [""]
        lines += [f"  {group}={'|'.join(choices(group))}" for group in used]
    lines += ["", f"defaults ({config_name}.yaml; any key can be set as KEY=VALUE):"]
    return "\n".join([*lines, *("  " + line for line in text.splitlines())])


def wants_help(argv: Sequence[str]) -> bool:
    """Tell whether the user asked for help."""
    return any(argument in ("-h", "--help", "help") for argument in argv)


def arguments() -> list[str]:
    """The command line without the program's name."""
    return sys.argv[1:]


def _spelled(config_name: str, argument: str, known: Set[str]) -> list[str]:
    """Accept `budget=fixed` for `+budget=fixed`, and any LiteLLM name for `model=`."""
    if argument.startswith("-") or "=" not in argument:
        raise SettingsError(f"{argument}: not understood; settings are KEY=VALUE, see --help")
    if argument.startswith("budget="):
        return ["+" + argument]
    if argument.startswith("strategy."):
        # the YAML spells strategy fields as the frozen file does; either spelling is fine
        key, _, value = argument.partition("=")
        argument = f"strategy.{to_camel(key.removeprefix('strategy.'))}={value}"
    found = re.match(r"model=(.+)$", argument)
    if found and found[1] not in choices("model"):
        # a name that is no profile of ours is a LiteLLM model name
        return ["model=named", f"model.model={_quoted(found[1])}"]
    key, _, value = argument.partition("=")
    if key in _TEXTS and value != "null":
        return [f"{key}={_quoted(value) if value[:1] not in QUOTES else value}"]
    said, meant = _RENAMED.get(config_name, ("", ""))
    if said and argument.startswith(said):
        return [meant + _quoted(argument.removeprefix(said))]
    # a known key that no YAML file spells out is set all the same
    nested = "." in argument.partition("=")[0] and argument.partition("=")[0] in known
    return ["++" + argument if nested else argument]


def _quoted(text: str) -> str:
    """Quote a value so that Hydra's grammar takes it as it is."""
    if re.fullmatch(r"[\w./-]+", text, re.ASCII):
        return text
    return "'" + text.replace("'", "\\'") + "'"


def _hydra_line(error: Exception, config_name: str, model: type[Record]) -> str:
    """Say what a person needs of Hydra's message: the key, what is wrong, the choices."""
    text = str(error)
    said, meant = _RENAMED.get(config_name, ("", ""))
    full = re.search(r"full_key: (\S+)", text)
    if "Missing mandatory value" in text and full:
        key = said.rstrip("=") if full[1] + "=" == meant else full[1]
        return f"{key}: has no value; say {key}=..."
    if unknown := re.search(r"Could not override '([^']+)'", text):
        return f"{unknown[1]}: unknown key{_near(unknown[1], model)}"
    group = re.search(r"Could not find '([^'/]+)/([^']*)'", text)
    if group and choices(group[1]):
        return f"{group[1]}={group[2]}: no such choice; there are {', '.join(choices(group[1]))}"
    text = re.sub(
        r"See https?://\S+ for details.*|full_key:.*|object_type=.*", "", text, flags=re.S
    )
    return one_line(text) or type(error).__name__


def _near(key: str, model: type[Record]) -> str:
    """Suggest known keys for one that is not."""
    known = list(_keys(model))
    near = difflib.get_close_matches(key, known, n=3, cutoff=0.6)
    return f"; did you mean {', '.join(near)}?" if near else "; --help lists the keys"


def _keys(model: type[Record], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield prefix + (to_camel(name) if prefix == "strategy." else name)
        for inner in (field.annotation, *get_args(field.annotation)):
            if isinstance(inner, type) and issubclass(inner, Record):
                yield from _keys(inner, f"{prefix}{name}.")
