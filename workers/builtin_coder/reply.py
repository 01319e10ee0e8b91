"""From messages to one reply: text or tool calls, cut at the output limit like a model's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workers.builtin_coder.author import Author
from workers.builtin_coder.conversation import as_conversation
from workers.builtin_coder.flavour import choose_flavour, heed
from workers.builtin_coder.judgement import answer_challenge, answer_review

CHARS_PER_TOKEN = 4
_TOKENS_PER_MESSAGE = 4


@dataclass(frozen=True)
class Answer:
    """One reply: its text, its tool calls as (name, arguments text), and why it ended."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish_reason: str = "stop"

    @property
    def tokens(self) -> int:
        """Output tokens by the coder's own measure of four characters a token."""
        size = len(self.text) + sum(len(name) + len(given) for name, given in self.calls)
        return max(1, -(-size // CHARS_PER_TOKEN))


def reply(
    messages: Sequence[dict[str, Any]],
    tools: Sequence[dict[str, Any]] = (),
    seed: int = 0,
    max_tokens: int = 1_024,
    variant: str = "",
) -> Answer:
    """Answer a conversation in OpenAI's message form; equal arguments give equal replies.

    `variant` names the habits (`careful`, `bold`, `thorough`) when the profile chooses them.
    """
    seen = as_conversation(messages)
    flavour = heed(choose_flavour(variant, seen.system), seen.asked)
    if seen.kind == "Review":
        return _limited(Answer(answer_review(seen, flavour)), max_tokens)
    if seen.kind == "Challenge":
        return _limited(Answer(answer_challenge(seen)), max_tokens)
    author = Author(seen, flavour, seed, max_tokens * CHARS_PER_TOKEN)
    actions = author.act()
    if not tools:
        spoken = "; ".join(f"{name} {given}" for name, given in actions)
        return _limited(Answer(spoken), max_tokens)
    calls = tuple((name, json.dumps(given, ensure_ascii=False)) for name, given in actions)
    return _limited(Answer("", calls, "tool_calls"), max_tokens)


def _limited(answer: Answer, max_tokens: int) -> Answer:
    """Cut a reply that is longer than its limit, as an endpoint does."""
    room = max_tokens * CHARS_PER_TOKEN
    if len(answer.text) + sum(len(n) + len(given) for n, given in answer.calls) <= room:
        return answer
    room -= len(answer.text[:room])
    calls = []
    for name, given in answer.calls:
        if room <= len(name):
            break
        calls.append((name, given[: room - len(name)]))
        room -= len(name) + len(calls[-1][1])
    return Answer(answer.text[: max_tokens * CHARS_PER_TOKEN], tuple(calls), "length")


def estimate_tokens(
    messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] = ()
) -> int:
    """Count input tokens by the coder's measure: text, calls and schemas, rounded up a message."""
    total = -(-len(json.dumps(list(tools))) // CHARS_PER_TOKEN) if tools else 0
    for message in messages:
        size = len(str(message.get("content") or ""))
        for call in message.get("tool_calls") or ():
            function = call.get("function", {})
            size += len(str(function.get("name", ""))) + len(str(function.get("arguments", "")))
        total += -(-size // CHARS_PER_TOKEN) + _TOKENS_PER_MESSAGE
    return total
