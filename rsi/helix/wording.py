"""Prompts as Jinja files, and the cleaning of everything that a model or program printed."""

from __future__ import annotations

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from rsi.digest import sha256_hex

LEFT_OUT = "[earlier output left out]"
STYLES = (
    "You are careful: you check each expected value against the requirement before you write it.",
    "You are bold: you look for the inputs on which a plausible program would go wrong.",
    "You are thorough: you go through the requirement sentence by sentence and test each.",
)
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TICKS = re.compile(r"`{3,}")
_MARK_ROOM = 60


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("rsi.helix", "prompts"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["fenced"] = fenced
    return found


def render(name: str, /, **values: object) -> str:
    """Render the prompt `prompts/<name>.md.j2`; an undefined variable raises UndefinedError."""
    return _templates().get_template(f"{name}.md.j2").render(values)


def prompt_digests() -> dict[str, str]:
    """Digest of each prompt file by its name, for the record of a run."""
    templates = _templates()
    assert templates.loader is not None
    return {
        name.removesuffix(".md.j2"): sha256_hex(templates.loader.get_source(templates, name)[0])
        for name in sorted(templates.list_templates(extensions=["j2"]))
    }


def fenced(text: str) -> str:
    """Fence a text as data; the fence is longer than any run of backticks inside it."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}\n{text}\n{ticks}"


def clean(raw: bytes | str) -> str:
    """Decode with replacement; drop terminal escapes, control characters, lone surrogates."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    text = _ANSI.sub("", text.replace("\r\n", "\n"))
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode()


def cut(text: str, most: int) -> tuple[str, bool]:
    """Keep head and tail of a text in at most `most` characters, with the gap marked.

    The second item tells whether something was left out.
    """
    if len(text) <= most:
        return text, False
    kept = max(most - _MARK_ROOM, 2)
    head, tail = text[: (kept + 1) // 2], text[len(text) - kept // 2 :]
    return f"{head}\n[... {len(text) - kept} characters left out ...]\n{tail}", True
