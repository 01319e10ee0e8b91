"""How tool calls travel: natively, or as one fenced block in the text of a reply."""

from __future__ import annotations

import json
import re

from rsi.helix.wording import clean, fenced
from rsi.ports import Message, ModelReply, ToolCall

MAX_CALLS_A_REPLY = 8
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_OPENING = re.compile(r"```tool[ \t]*\r?\n?")


def calls_of(reply: ModelReply, native: bool) -> tuple[ToolCall, ...]:
    """The tool calls of a reply; in the text protocol the first fenced block only."""
    if native:
        return tuple(
            ToolCall(
                call_id=clean(call.call_id) or f"call_{index}",
                name=_NOT_A_NAME.sub("_", call.name)[:64] or "_",
                arguments=call.arguments,
            )
            for index, call in enumerate(reply.tool_calls[:MAX_CALLS_A_REPLY])
        )
    found = _OPENING.search(reply.text)
    return () if found is None else (_call_in(reply.text[found.end() :]),)


def spoken(reply: ModelReply, calls: tuple[ToolCall, ...], native: bool) -> Message:
    """The reply as it stays in the conversation; endpoints refuse arguments that are no JSON."""
    kept = tuple(call.updated(arguments=_valid(call.arguments)) for call in calls)
    return Message(role="assistant", content=clean(reply.text), tool_calls=kept if native else ())


def answered(call: ToolCall, result: str, native: bool) -> Message:
    """The result of a call as the message that follows it."""
    if native:
        return Message(role="tool", content=result, tool_call_id=call.call_id)
    return Message(role="user", content=f"Result of {call.name}:\n\n{fenced(result)}")


def _call_in(text: str) -> ToolCall:
    """Read the JSON at the head of a text; what is not JSON becomes a call that is malformed."""
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not isinstance(value.get("tool"), str):
        return ToolCall(call_id="text", name="tool", arguments="")
    arguments = json.dumps(value.get("arguments", {}))
    return ToolCall(call_id="text", name=clean(value["tool"])[:40], arguments=arguments)


def _valid(arguments: str) -> str:
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"
