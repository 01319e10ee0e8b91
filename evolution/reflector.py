"""Reflectors: from evidence to a diagnosis and bounded edits. This one needs no model."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Protocol

from evolution.candidate import Candidate
from evolution.edits import Edit, Proposal, edit_of
from evolution.evidence import Evidence
from evolution.remedies import ADVICE, REMEDIES, Advice, Remedy
from rsi.strategy import BOUNDS, TEXT_BOUNDS, Strategy


class Reflector(Protocol):
    """Explains failures and proposes edits; None declines.

    `index` is the child's place among those this reflector is asked for in a generation, so
    that siblings differ; `rng` is the only source of chance.
    """

    def propose(
        self, evidence: Evidence, parent: Candidate, index: int, rng: Random
    ) -> Proposal | None: ...


MISSED = ("missed",)
MAX_STRENGTH = 3


class SymptomReflector:
    """Reads symptoms and labels alone; siblings take different symptoms and step sizes.

    The first child widens the field of the top symptom, the second all fields with symptoms
    at once, the next ones the following symptoms or add guidance; then again with larger steps.
    """

    def propose(
        self, evidence: Evidence, parent: Candidate, index: int, rng: Random
    ) -> Proposal | None:
        """Give the index-th proposal of the list, or None when the evidence supports fewer."""
        found: list[Proposal] = []
        for strength in range(1, MAX_STRENGTH + 1):
            for proposal in _options(evidence, parent.strategy, strength):
                keys = [{(e.field, repr(e.to)) for e in p.edits} for p in found]
                if {(e.field, repr(e.to)) for e in proposal.edits} not in keys:
                    found.append(proposal)
        return found[index] if index < len(found) else None


def stepped(name: str, value: int, factor: float) -> int:
    """Raise a numeric field by a factor, by at least one, never past its upper bound."""
    return min(BOUNDS[name][1], max(value + 1, round(value * factor)))


def _options(evidence: Evidence, strategy: Strategy, strength: int) -> Iterator[Proposal]:
    remedies = _ranked_remedies(evidence)
    widened = [_widen(r, strategy, strength, evidence) for r in remedies]
    single = [(r, e) for r, e in zip(remedies, widened, strict=True) if e is not None]
    for position, (remedy, edit) in enumerate(single):
        yield _proposal(evidence, remedy.symptom, [edit], remedy.lesson)
        if position == 0 and len(single) > 1:
            symptoms = ", ".join(r.symptom for r, _ in single)
            yield _proposal(evidence, symptoms, [e for _, e in single], remedy.lesson)
    for advice in ADVICE:
        advised = _advise(advice, evidence, strategy)
        if advised is not None:
            yield _proposal(evidence, advice.words[0], [advised], advice.text)


def _ranked_remedies(evidence: Evidence) -> list[Remedy]:
    counts = evidence.symptoms.model_dump()
    # inputs that the suites missed are what a differential challenge looks for
    counts["challenge_differences"] += sum(
        n for label, n in evidence.labels.items() if _mentions(label, MISSED)
    )
    active = [r for r in REMEDIES if counts[r.symptom]]
    return sorted(active, key=lambda r: -evidence.affected.get(r.symptom, 0) or -1)


def _widen(remedy: Remedy, strategy: Strategy, strength: int, evidence: Evidence) -> Edit | None:
    value = getattr(strategy, remedy.name)
    to = stepped(remedy.name, value, remedy.factor**strength)
    if to == value:
        return None
    seen = evidence.affected.get(remedy.symptom, 0)
    why = f"{remedy.symptom} in {seen} of {evidence.rollouts} rollouts"
    return edit_of(strategy, remedy.name, to, why)


def _advise(advice: Advice, evidence: Evidence, strategy: Strategy) -> Edit | None:
    kinds = [*evidence.labels, *evidence.affected]
    named = [kind for kind in kinds if _mentions(kind, advice.words)]
    current = getattr(strategy, advice.name)
    text = f"{current}\n{advice.text}" if current else advice.text
    if not named or advice.text in current or len(text) > TEXT_BOUNDS[advice.name]:
        return None
    return edit_of(strategy, advice.name, text, f"failures of kind {named[0]}"[:400])


def _mentions(label: str, words: tuple[str, ...]) -> bool:
    return any(word in label.lower() for word in words)


def _proposal(evidence: Evidence, cause: str, edits: list[Edit], lesson: str) -> Proposal:
    return Proposal(
        diagnosis=f"{evidence.failed} of {evidence.rollouts} rollouts failed; addressed: {cause}",
        first_divergence=cause,
        edits=tuple(edits),
        lesson=lesson,
    )
