"""What of a conversation is sent: oldest tool output goes first, the requirement never."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rsi.helix.wording import LEFT_OUT
from rsi.ports import Message, ToolCall

Part = Literal["fixed", "turn", "assistant", "tool"]
_LONG_ARGUMENT_CHARS = 60


@dataclass(frozen=True)
class Entry:
    """One message with its part: system and requirement are `fixed`, later openings `turn`."""

    part: Part
    message: Message


def fit(
    entries: Sequence[Entry], count: Callable[[tuple[Message, ...]], int], most: int
) -> tuple[tuple[Message, ...], int, bool]:
    """Leave out as little as brings the messages to at most `most` tokens.

    Gives the messages, their tokens, and whether anything was left out. When even the fixed
    part and the last opening are longer than that, they are sent all the same.
    """
    order = _order(entries)

    def tried(left_out: int) -> tuple[tuple[Message, ...], int]:
        gone = set(order[:left_out])
        messages = tuple(
            shortened(entry.message) if index in gone else entry.message
            for index, entry in enumerate(entries)
        )
        return messages, count(messages)

    messages, tokens = tried(0)
    if tokens <= most or not order:
        return messages, tokens, False
    low, high = 1, len(order)
    while low < high:
        middle = (low + high) // 2
        if tried(middle)[1] <= most:
            high = middle
        else:
            low = middle + 1
    return *tried(low), True


def shortened(message: Message) -> Message:
    """A message without its text; long arguments of its calls are left out too."""
    calls = tuple(call.updated(arguments=_short_arguments(call)) for call in message.tool_calls)
    text = LEFT_OUT if len(message.content) > len(LEFT_OUT) else message.content
    return message.updated(content=text, tool_calls=calls)


def _order(entries: Sequence[Entry]) -> list[int]:
    """Indices in the order in which they are left out."""
    talk = [i for i, entry in enumerate(entries) if entry.part == "assistant"]
    turns = [i for i, entry in enumerate(entries) if entry.part == "turn"]
    last = talk[-1] if talk else -1
    outputs = [i for i, entry in enumerate(entries) if entry.part == "tool"]
    older = [i for i in outputs if i < last]
    newest = [i for i in outputs if i > last]
    return [*older, *talk[:-1], *turns[:-1], *newest, *talk[-1:]]


def _short_arguments(call: ToolCall) -> str:
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return "{}"
    return json.dumps(
        {
            key: LEFT_OUT if isinstance(value, str) and len(value) > _LONG_ARGUMENT_CHARS else value
            for key, value in given.items()
        }
    )
