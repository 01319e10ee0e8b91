"""What the embedded coder can see: the messages of one conversation, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workers.builtin_coder.examples import ELISION

KINDS = ("Task", "Pair is inconsistent", "Review", "Revise", "Challenge")
_HEADING = re.compile(rf"^\s*# ({'|'.join(KINDS)})\b")
_DEFINITION = re.compile(r"^(?:async\s+)?(?:def|class)\s+([A-Za-z]\w*)", re.MULTILINE)


@dataclass(frozen=True)
class Turn:
    """One tool call of the coder's own and what came back; `result` may be elided or empty."""

    tool: str
    arguments: dict[str, Any]
    result: str
    stage: int

    @property
    def path(self) -> str:
        return str(self.arguments.get("path", ""))

    @property
    def command(self) -> str:
        return str(self.arguments.get("command", ""))


@dataclass(frozen=True)
class Conversation:
    """The messages in OpenAI's form, read once; a turn's stage counts the briefs before it."""

    messages: tuple[dict[str, Any], ...]

    @cached_property
    def briefs(self) -> tuple[tuple[str, str], ...]:
        """The recognised user messages in order: kind and text."""
        found = []
        for message in self.messages:
            match = _HEADING.match(_text(message)) if message.get("role") == "user" else None
            if match:
                found.append((match.group(1), _text(message)))
        return tuple(found)

    @property
    def kind(self) -> str:
        """Kind of the brief that is being answered; a task when none is recognised."""
        return self.briefs[-1][0] if self.briefs else "Task"

    @property
    def brief(self) -> str:
        return self.briefs[-1][1] if self.briefs else self.asked

    @cached_property
    def asked(self) -> str:
        """All that the system and the user said, without tool results."""
        wanted = ("system", "user")
        return "\n\n".join(_text(m) for m in self.messages if m.get("role") in wanted)

    @cached_property
    def requirement(self) -> str:
        """Text of the first task brief, or all that was asked when there is none."""
        tasks = [text for kind, text in self.briefs if kind == "Task"]
        return tasks[0] if tasks else self.asked

    @property
    def system(self) -> str:
        return "\n".join(_text(m) for m in self.messages if m.get("role") == "system")

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The coder's own tool calls with their results, oldest first."""
        results = {
            str(m.get("tool_call_id", "")): _text(m)
            for m in self.messages
            if m.get("role") == "tool"
        }
        turns, stage = [], 0
        for message in self.messages:
            if message.get("role") == "user" and _HEADING.match(_text(message)):
                stage += 1
            for call in message.get("tool_calls") or ():
                function = call.get("function", {})
                turns.append(
                    Turn(
                        tool=str(function.get("name", "")),
                        arguments=_arguments(function.get("arguments")),
                        result=results.get(str(call.get("id", "")), ""),
                        stage=stage,
                    )
                )
        return tuple(turns)

    @property
    def stage(self) -> int:
        return len(self.briefs)

    def reads(self, path: str) -> list[str]:
        """Results of reading one file, whole or in parts."""
        return [
            turn.result
            for turn in self.turns
            if (turn.tool == "read_file" and turn.path == path)
            or (turn.tool == "run" and turn.command.startswith("sed -n") and path in turn.command)
        ]

    def parts(self, path: str) -> list[tuple[int, int, str]]:
        """Parts of a file that were read by line numbers: first, last, what came back."""
        found = []
        for turn in self.turns:
            match = re.match(r"sed -n '(\d+),(\d+)p' (\S+)$", turn.command)
            if match and match.group(3) == path:
                found.append((int(match.group(1)), int(match.group(2)), turn.result))
        return found

    @cached_property
    def listed(self) -> tuple[str, ...]:
        """Paths that a listing showed, without the submission's."""
        paths: list[str] = []
        for turn in self.turns:
            if turn.tool == "list_files":
                words = re.findall(r"[\w./-]*\w\.\w{1,8}\b", turn.result)
                paths.extend(w.removeprefix("./") for w in words)
        seen = [p for p in dict.fromkeys(paths) if not p.startswith(("submission/", ".", "/"))]
        return tuple(seen)

    @cached_property
    def definitions(self) -> dict[str, str]:
        """Public names that the program's files define, with the file, as far as they were read."""
        found: dict[str, str] = {}
        for turn in self.turns:
            path = turn.path
            if turn.tool == "read_file" and path.endswith(".py") and "submission/" not in path:
                for name in _DEFINITION.findall(turn.result):
                    found.setdefault(name, path)
        return found

    @cached_property
    def evidence(self) -> str:
        """Requirement and documents as far as they are visible: where examples may stand."""
        parts = [self.requirement]
        for turn in self.turns:
            reading = turn.tool == "read_file" or turn.command.startswith("sed -n")
            if reading and "submission/" not in turn.path + turn.command:
                parts.append(turn.result)
        return "\n\n".join(parts)


def is_cut(text: str) -> bool:
    """Tell whether a result shows an elision mark."""
    return bool(ELISION.search(text))


def head_lines(text: str) -> int:
    """Whole lines before the elision mark."""
    mark = ELISION.search(text)
    return text[: mark.start()].rstrip("\n").count("\n") if mark else 0


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    return content if isinstance(content, str) else ""


def _arguments(raw: object) -> dict[str, Any]:
    if isinstance(raw, dict):
        return raw
    try:
        value = json.loads(raw) if isinstance(raw, str) else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def as_conversation(messages: Sequence[dict[str, Any]]) -> Conversation:
    return Conversation(tuple(messages))
