"""Three ways to work: heterogeneous agents differ in order, boldness and diligence."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Flavour:
    """Habits of one agent.

    `parts` is how many further parts of a cut file it reads, `boundaries` how many derived
    tests it adds at most, `agreement` how many different passing repairs must agree on a
    derived result, `wide` whether boundary inputs leave the range that examples show,
    `order` names the mutations tried first, `rerun` whether it runs the suite before submitting.
    """

    name: str
    parts: int
    boundaries: int
    agreement: int
    wide: bool
    order: str
    rerun: bool


FLAVOURS = {
    "careful": Flavour("careful", 2, 6, 2, False, "operators", True),
    "bold": Flavour("bold", 0, 14, 1, True, "calls", False),
    "thorough": Flavour("thorough", 1, 10, 2, True, "shuffled", False),
}
_STYLE_WORDS = {
    "careful": r"careful|cautious|conservativ|minimal|precise|literal",
    "bold": r"bold|quick|fast|aggressive|direct|pragmatic",
    "thorough": r"thorough|exhaustive|systematic|sceptical|skeptical|boundar|adversarial",
}


def choose_flavour(variant: str, system: str) -> Flavour:
    """Pick habits by the profile's variant, else by the agent's described style, else its name."""
    for name in FLAVOURS:
        if name in variant.lower():
            return FLAVOURS[name]
    named = re.search(r"You are (?:agent )?([\w-]+)\.", system)
    described = system[named.end() : named.end() + 300] if named else ""
    for name, words in _STYLE_WORDS.items():
        if re.search(words, described, re.IGNORECASE):
            return FLAVOURS[name]
    identity = (named.group(1) if named else "") + variant
    index = hashlib.sha256(identity.encode()).digest()[0] % len(FLAVOURS)
    return list(FLAVOURS.values())[index]


def heed(flavour: Flavour, asked: str) -> Flavour:
    """Adapt habits to guidance and lessons: a model does what the words ask of it."""
    text = asked.lower()
    if re.search(r"in parts|part by part|piece by piece|in pieces|in slices|sed -n", text):
        flavour = replace(flavour, parts=max(flavour.parts, 4))
    if re.search(r"more boundary|boundary (?:tests|inputs|cases|values)|edge cases", text):
        flavour = replace(flavour, boundaries=flavour.boundaries + 6)
    if re.search(r"only what the requirement|no derived|unsupported|not invent|avoid guess", text):
        flavour = replace(flavour, boundaries=min(flavour.boundaries, 3), agreement=3, wide=False)
    if re.search(r"before (?:you )?submit|re-?run the suite", text):
        flavour = replace(flavour, rerun=True)
    return flavour
