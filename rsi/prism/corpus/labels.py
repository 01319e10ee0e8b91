"""Shipped evidence of the embedded corpus: which program failed which checks, by digest."""

from __future__ import annotations

import gzip
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from rsi.digest import canonical_json
from rsi.errors import BenchmarkError

LABELS_FILE = "labels.json.gz"
REBUILD = "run `python -m rsi.prism.corpus.engine` to rebuild it"


def read_labels() -> dict[str, Any]:
    """Read the evidence; raises BenchmarkError when the package lacks it or it is damaged."""
    place = files("rsi.prism.corpus").joinpath(LABELS_FILE)
    try:
        labels: dict[str, Any] = json.loads(gzip.decompress(place.read_bytes()))
    except (OSError, EOFError, ValueError) as error:
        raise BenchmarkError(
            f"kata corpus: cannot read {LABELS_FILE} ({error}); {REBUILD}"
        ) from None
    return labels


def write_labels(labels: dict[str, Any]) -> Path:
    """Write the evidence into the package, byte for byte the same for the same labels."""
    place = Path(__file__).with_name(LABELS_FILE)
    place.write_bytes(gzip.compress(canonical_json(labels).encode(), mtime=0))
    return place
