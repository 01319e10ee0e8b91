"""The digests of all prompts: what a run records and a frozen file is bound to."""

from __future__ import annotations

import evolution.model_reflector
import rsi.helix.wording


def prompt_digests() -> dict[str, str]:
    """Digest of every prompt text by name, of the workflow and of the reflector."""
    return {**rsi.helix.wording.prompt_digests(), **evolution.model_reflector.prompt_digests()}
