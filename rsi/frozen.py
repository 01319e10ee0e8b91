"""The frozen strategy file: canonical JSON with provenance and digests that can be checked.

Every section has a digest and `digest` covers the section digests, so an altered file is
refused and the altered section is named.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rsi.budget import Caps
from rsi.digest import digest_of
from rsi.errors import FrozenError
from rsi.strategy import Strategy, parse_strategy

SCHEMA_VERSION = 1
MAX_BYTES = 10_000_000
SECTIONS = (
    "strategy",
    "strategyId",
    "caps",
    "models",
    "workflow",
    "prompts",
    "lineage",
    "splits",
    "result",
    "engine",
    "runId",
)

OBJECTS = ("strategy", "caps", "prompts", "splits", "engine")


def freeze(sections: dict[str, Any]) -> dict[str, Any]:
    """Add schema version and digests to the sections; raises ValueError when one is missing."""
    missing = set(SECTIONS) ^ set(sections)
    if missing:
        raise ValueError(f"frozen file sections differ: {sorted(missing)}")
    digests = {name: digest_of(sections[name]) for name in SECTIONS}
    return {
        "schemaVersion": SCHEMA_VERSION,
        **sections,
        "digests": digests,
        "digest": digest_of([SCHEMA_VERSION, digests]),
    }


def altered(document: dict[str, Any]) -> list[str]:
    """Name every section that does not match its digest, and unknown or missing keys."""
    digests = document.get("digests")
    if not isinstance(digests, dict):
        return ["digests"]
    shapeless = [n for n in OBJECTS if n in document and not isinstance(document[n], dict)]
    if shapeless:
        return shapeless
    known = {"schemaVersion", "digests", "digest", *SECTIONS}
    names = sorted(set(document) ^ known)
    for name in SECTIONS:
        if name in document and digests.get(name) != digest_of(document[name]):
            names.append(name)
    if document.get("digest") != digest_of([document.get("schemaVersion"), digests]):
        names.append(
            "digests" if document.get("schemaVersion") == SCHEMA_VERSION else "schemaVersion"
        )
    if not names and document["strategyId"] != _strategy(document).strategy_id:
        names.append("strategyId")
    return names


def read_frozen(path: Path) -> dict[str, Any]:
    """Read and check a frozen file; raises FrozenError in one line naming what is wrong."""
    try:
        if path.exists() and not path.is_file():
            raise FrozenError(f"{path}: is no regular file")
        if path.stat().st_size > MAX_BYTES:
            raise FrozenError(f"{path}: larger than {MAX_BYTES} bytes, no frozen strategy")
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise FrozenError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise FrozenError(f"{path}: not JSON ({error})") from None
    if not isinstance(document, dict):
        raise FrozenError(f"{path}: not a frozen strategy (a JSON object is expected)")
    try:
        names = altered(document)
    except (ValueError, TypeError, RecursionError) as error:
        raise FrozenError(f"{path}: altered or damaged: holds what JSON cannot ({error})") from None
    if names:
        raise FrozenError(f"{path}: altered or damaged: {', '.join(names)}; export it again")
    return document


def strategy_of(document: dict[str, Any]) -> Strategy:
    """The strategy of a checked document."""
    return _strategy(document)


def differences(document: dict[str, Any], caps: Caps, prompts: dict[str, str]) -> list[str]:
    """Name what differs between the file and what is installed: caps by field, prompts by name."""
    theirs = document["caps"]
    names = [f"caps.{k}" for k, v in caps.to_json().items() if theirs.get(k) != v]
    names += [
        f"prompt {k}"
        for k in sorted({*prompts, *document["prompts"]})
        if prompts.get(k) != document["prompts"].get(k)
    ]
    return names


def _strategy(document: dict[str, Any]) -> Strategy:
    return parse_strategy(document["strategy"], "strategy")
