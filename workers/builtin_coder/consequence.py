"""What a text says that a call gives: the words and signs between a call and its result."""

from __future__ import annotations

import re

from workers.builtin_coder.check import Check
from workers.builtin_coder.notation import is_value

_NAMED_ERROR = r"([A-Z]\w*(?:Error|Exception|Interrupt|Iteration))\b"
_RAISES = re.compile(
    r"\b(?i:raises?|throws?|is rejected with|fails? with|error:?)[\s`:*]*(?:an?\s+)?`?"
    + _NAMED_ERROR
)
ERROR_NAME = re.compile(r"^`?" + _NAMED_ERROR)
_SIGN = r"(?:-+>|=+>|[→⇒↦➞➔➜➝⟶⟹]|==?|≡|#+\s*(?:-+>|=+>|→)?|:|\|)"
_WORDS = (
    r"(?:will |must |should |shall |which |that |then )*"
    r"(?:returns?|gives?|yields?|equals?|produces?|evaluates? to|results? in|be|is)"
    r"(?: the (?:value|result|list|string|number|tuple))?(?: equal to| exactly)?"
)
_LEADS_TO = re.compile(rf"[\s`*,]*(?:{_SIGN}|{_WORDS})[\s:`*]*(?:returns?\s+)?`?\s*", re.IGNORECASE)
_MOST_CUTS = 80
_ERROR_REACH = 60


def consequence(call: str, rest: str, quote: str) -> Check | None:
    """Read what follows a call in its line; None when nothing is said that a test can check."""
    error = _RAISES.search(rest[:_ERROR_REACH])
    if error and "(" not in rest[: error.start()]:
        return Check(call, raises=error.group(1), quote=quote)
    joint = _LEADS_TO.match(rest)
    if not joint or not joint.group().strip(" `*,"):
        return None
    after = rest[joint.end() :]
    value = leading_value(after, quoted=joint.group().rstrip().endswith("`"))
    if value:
        return Check(call, value, quote=quote)
    error = ERROR_NAME.match(after)
    return Check(call, raises=error.group(1), quote=quote) if error else None


def leading_value(text: str, quoted: bool) -> str:
    """Take the longest leading text that is a value; empty when there is none."""
    text = text.split("`", 1)[0] if quoted or "`" in text else text
    text = text.split(" | ", 1)[0].rstrip().rstrip("|").rstrip()
    cuts = [match.start() for match in re.finditer(r"[\s,;.]", text)]
    candidates = [c.rstrip(".,;:! ") for c in (text, *(text[:cut] for cut in reversed(cuts)))]
    for candidate in dict.fromkeys(candidates[:_MOST_CUTS]):
        if candidate and is_value(candidate) and not _is_cut(text[len(candidate) :]):
            return candidate.strip()
    return ""


def _is_cut(following: str) -> bool:
    """Tell whether a value goes on after the place where it was cut."""
    return bool(re.match(r"[.]\d|\w|,\s*[-\d'\"\[({]|\s*[-+*/%([{]", following))
