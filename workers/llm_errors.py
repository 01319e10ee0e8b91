"""What a LiteLLM error means: refused for good, or worth another try."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from typing import Any

from rsi.errors import ModelRefused, ModelUnavailable

RETRYABLE = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_REFUSALS = {
    400: "the request is not accepted; check the profile's options and context length",
    401: "the key is not accepted; check {key}",
    402: "the account has no credit; top it up or name another model",
    403: "the key may not use this model; check {key} and the model's access",
    404: "there is no such model or path; check the profile's model and api_base",
    413: "the request is too large; lower contextTokens",
    422: "the request is not accepted; check the profile's options",
}
_REFUSED_CONNECTION = (
    "connection refused",
    "connect call failed",
    "cannot connect to host",
    "connection error",
    "name resolution",
    "name or service not known",
)


def classify(error: Any, place: str, key_env: str) -> ModelRefused | ModelUnavailable:
    """Turn a LiteLLM error into ours; the server's own text is never quoted, it may hold a key.

    `place` names model and endpoint, `key_env` the environment variable of the key.
    """
    status = getattr(error, "status_code", None)
    key = f"the environment variable {key_env}" if key_env else "api_key_env of the profile"
    if "ContextWindow" in type(error).__name__:
        return ModelRefused(f"{place}: the context is too long for it; lower contextTokens")
    if _unreachable(error):
        return ModelUnavailable(f"{place}: the endpoint does not answer; is it running?")
    if status in _REFUSALS:
        return ModelRefused(f"{place}: status {status}, {_REFUSALS[status].format(key=key)}")
    if status in RETRYABLE:
        return ModelUnavailable(f"{place}: status {status}", _retry_after(error))
    if isinstance(status, int) and 400 <= status < 500:
        return ModelRefused(f"{place}: status {status}; check the profile")
    return ModelUnavailable(f"{place}: {type(error).__name__}")


def _unreachable(error: BaseException) -> bool:
    """Tell whether nothing listens: the cause is a refused connection somewhere in the chain."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        text = str(link).lower()
        if isinstance(link, ConnectionRefusedError) or any(t in text for t in _REFUSED_CONNECTION):
            return True
        link = link.__cause__ or link.__context__
    return False


def _retry_after(error: Any) -> float | None:
    """Seconds the endpoint asks to wait, from a number or a date; None when it said nothing."""
    response = getattr(error, "response", None)
    headers: Mapping[str, str] = getattr(response, "headers", None) or {}
    raw = headers.get("retry-after")
    if not raw:
        return None
    try:
        return max(0.0, float(raw))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(raw).timestamp() - time.time())
    except ValueError:
        return None
