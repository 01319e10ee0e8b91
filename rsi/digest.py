"""Canonical JSON and content digests: one spelling for everything that is hashed."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    """Spell a JSON value the same way every time: sorted keys, no spaces, UTF-8, no NaN.

    Raises ValueError for NaN or infinity and TypeError for what JSON cannot hold.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def sha256_hex(content: bytes | str) -> str:
    """Hash bytes (text as UTF-8) to 64 hexadecimal characters."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def digest_of(value: Any) -> str:
    """Hash a JSON value by its canonical spelling."""
    return sha256_hex(canonical_json(value))


def seed_of(*parts: object) -> int:
    """Derive a 31-bit seed from parts, equal in every process and independent of hash seeds."""
    return int(sha256_hex("\x1f".join(map(str, parts)))[:8], 16) & 0x7FFFFFFF
