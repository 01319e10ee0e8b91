"""Readable names for runs: when it was started, and two words to tell siblings apart."""

from __future__ import annotations

import re
import secrets
from datetime import datetime

from rsi.errors import SettingsError

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_MOODS = [
    "amber",
    "bold",
    "brisk",
    "calm",
    "clear",
    "deft",
    "eager",
    "fair",
    "gentle",
    "keen",
    "lively",
    "mellow",
    "patient",
    "quiet",
    "sunny",
    "witty",
]
_ANIMALS = [
    "badger",
    "beaver",
    "crane",
    "falcon",
    "finch",
    "gecko",
    "heron",
    "ibex",
    "lark",
    "lynx",
    "marten",
    "otter",
    "panda",
    "raven",
    "stork",
    "wren",
]


def new_run_id(started: datetime) -> str:
    """Name a run after its start, such as 20261130-161502-calm-otter."""
    words = f"{secrets.choice(_MOODS)}-{secrets.choice(_ANIMALS)}"
    return f"{started:%Y%m%d-%H%M%S}-{words}"


def check_run_id(run_id: str) -> str:
    """Return a run id that is safe as a folder name; raises SettingsError for another."""
    if not RUN_ID.fullmatch(run_id):
        raise SettingsError(
            f"run_id={run_id!r}: use 1 to 96 letters, digits, dots, dashes and underscores, "
            "starting with a letter or digit"
        )
    return run_id
