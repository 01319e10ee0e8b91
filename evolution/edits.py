"""Edits and proposals, and the one gate through which a strategy may change.

Whoever wrote a proposal, the schema and the bounds decide: nothing outside the strategy's own
table can be named, and what is declared must be exactly what changes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Annotated

from pydantic import AfterValidator, Field, StrictInt, StrictStr

from rsi.digest import digest_of
from rsi.errors import StrategyError
from rsi.strategy import MAX_LESSON_CHARS, Strategy, parse_strategy
from rsi.wire import Record, to_snake

FIELDS = tuple(Strategy.model_fields)


def _plain(text: str) -> str:
    # lone surrogates cannot be hashed, control characters can hide text from a reader
    if not all(c.isprintable() or c in "\n\t" for c in text):
        raise ValueError("holds characters that cannot be printed")
    return text


Plain = Annotated[StrictStr, AfterValidator(_plain)]
Value = StrictInt | Plain | tuple[Plain, ...]


class Edit(Record):
    """One field change; `field` is a strategy field in either spelling, `why` at most 400 chars."""

    field: str = Field(max_length=64)
    from_: Value = Field(alias="from")
    to: Value
    why: Plain = Field("", max_length=400)

    @property
    def name(self) -> str:
        """The strategy's attribute; raises StrategyError for anything that is not its field."""
        name = to_snake(self.field)
        if name not in FIELDS:
            raise StrategyError(
                f"{self.field!r} is not a strategy field; name one of {', '.join(FIELDS)}"
            )
        return name


class Proposal(Record):
    """A diagnosis with the edits that follow from it and what the next generation may learn."""

    diagnosis: Plain = Field("", max_length=2_000)
    first_divergence: Plain = Field("", max_length=600)
    edits: tuple[Edit, ...] = Field(min_length=1, max_length=len(FIELDS))
    lesson: Plain = Field("", max_length=MAX_LESSON_CHARS)


def edit_of(strategy: Strategy, name: str, to: Value, why: str) -> Edit:
    """Build an edit of one attribute from its current value."""
    spelled = Strategy.model_fields[name].alias or name
    return Edit(field=spelled, from_=getattr(strategy, name), to=to, why=why)


def apply_edits(strategy: Strategy, proposal: Proposal, task_ids: Iterable[str] = ()) -> Strategy:
    """Apply a proposal's edits and return the child strategy, validated.

    Raises StrategyError with one line when a field is unknown or named twice, `from` is not the
    current value, an edit changes nothing, a value is out of bounds, or a text names a task.
    """
    changes: dict[str, Value] = {}
    for edit in proposal.edits:
        name = edit.name
        current = getattr(strategy, name)
        if name in changes:
            raise StrategyError(f"{edit.field}: edited twice")
        if edit.from_ != current:
            raise StrategyError(f"{edit.field}: `from` is not the current value {current!r}")
        if edit.to == current:
            raise StrategyError(f"{edit.field}: the edit changes nothing")
        changes[name] = edit.to
    child = parse_strategy({**strategy.model_dump(), **changes}, "proposal")
    observed = {n: getattr(child, n) for n in changed_fields(strategy, child)}
    if observed != changes:
        raise StrategyError("the declared edits are not the observed difference")
    _refuse_task_ids([proposal.lesson, *_texts(changes.values())], task_ids)
    return child


def changed_fields(before: Strategy, after: Strategy) -> tuple[str, ...]:
    """Attributes in which two strategies differ, in the order of the strategy's table."""
    return tuple(n for n in FIELDS if getattr(before, n) != getattr(after, n))


def edit_key(edits: Iterable[Edit]) -> str:
    """Digest of a set of field changes, whoever proposed them and in whatever order."""
    return digest_of(sorted([e.name, repr(e.from_), repr(e.to)] for e in edits))


def refuse_repeat(
    child: Strategy, proposal: Proposal, tried: Collection[str], rejected: Collection[str]
) -> None:
    """Raise StrategyError for a strategy (by id) or a set of edits (by key) seen before."""
    if child.strategy_id in tried:
        raise StrategyError("the proposed strategy was tried before")
    if edit_key(proposal.edits) in rejected:
        raise StrategyError("the same edits were rejected before")


def _texts(values: Iterable[Value]) -> list[str]:
    texts: list[str] = []
    for value in values:
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, tuple):
            texts.extend(value)
    return texts


def _refuse_task_ids(texts: Iterable[str], task_ids: Iterable[str]) -> None:
    joined = "\n".join(texts)
    for task_id in task_ids:
        if re.search(rf"(?<![\w.-]){re.escape(task_id)}(?![\w-])", joined, re.IGNORECASE):
            raise StrategyError("a lesson or guidance text names a task; say it in general terms")
