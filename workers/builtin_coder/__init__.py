"""The embedded coder: writes suites, repairs and reviews by search, from the messages alone."""

from __future__ import annotations

from workers.builtin_coder.reply import Answer, estimate_tokens, reply

__all__ = ["Answer", "estimate_tokens", "reply"]
