"""Worked examples in prose, tables and code: every check that a text states."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from workers.builtin_coder.notation import (
    call_end,
    called_names,
    equal_values,
    is_application,
    is_value,
    normal,
)

ELISION = re.compile(
    r"\[[^\]\n]{0,80}\b(?:elided|omitted|truncated|cut|left out)\b[^\]\n]{0,80}\]|"
    r"\.\.\.[^\n]{0,60}\b(?:elided|omitted|truncated)\b[^\n]{0,60}|"
    r"…[^\n]{0,60}\b(?:elided|omitted|truncated)\b[^\n]{0,60}",
    re.IGNORECASE,
)
_CALL = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*\(")
_LEADS_TO = re.compile(
    r"[\s`*,]*(?:(?:-+>|=+>|→|⇒|↦|==?|≡|#+\s*(?:-+>|=+>|→)?|:|\|)|"
    r"(?:will |must |should |shall |which |that |then )*"
    r"(?:returns?|gives?|yields?|equals?|produces?|evaluates? to|results? in|be|is)"
    r"(?: the (?:value|result|list|string|number|tuple))?(?: equal to| exactly)?)"
    r"[\s:`*]*(?:returns?\s+)?`?\s*",
    re.IGNORECASE,
)
_RAISES = re.compile(
    r"(?:raises?|throws?|is rejected with|fails? with|error:?)[\s`:*]*(?:an?\s+)?`?"
    r"([A-Z]\w*(?:Error|Exception|Interrupt|Iteration))\b",
    re.IGNORECASE,
)
_ERROR_NAME = re.compile(r"^([A-Z]\w*(?:Error|Exception|Interrupt|Iteration))\b")


@dataclass(frozen=True)
class Check:
    """One stated or derived check: after `setup`, `call` gives `expected` or raises `raises`.

    All three are Python source text that was parsed and never run; `stated` is False for a
    check whose expected value comes from a repaired program.
    """

    call: str
    expected: str = ""
    raises: str = ""
    setup: tuple[str, ...] = ()
    stated: bool = True
    quote: str = ""

    @property
    def key(self) -> tuple[tuple[str, ...], str]:
        return self.setup, normal(self.call)

    def agrees(self, other: Check) -> bool:
        """Tell whether two checks of the same call expect the same."""
        if self.raises or other.raises:
            return self.raises == other.raises
        return equal_values(self.expected, other.expected)


def read_examples(text: str, known: Iterable[str] = ()) -> tuple[Check, ...]:
    """Collect the checks of a text in order; with `known` names only calls of those count.

    Lines beside an elision mark may be cut and are left out; examples that contradict each
    other are dropped together.
    """
    lines = _whole_lines(text)
    names = frozenset(known)
    found: list[Check] = []
    position = 0
    while position < len(lines):
        if lines[position].lstrip("`*- ").startswith(">>>"):
            position, checks = _read_session(lines, position)
            found.extend(checks)
            continue
        found.extend(_read_line(lines[position]))
        position += 1
    if len(names) == 1:
        found.extend(_read_value_tables(lines, next(iter(names))))
    wanted = [check for check in found if _concerns(check, names)]
    return _without_contradictions(wanted)


def _whole_lines(text: str) -> list[str]:
    lines = text.splitlines()
    marked = {number for number, line in enumerate(lines) if ELISION.search(line)}
    near = {number + step for number in marked for step in (-1, 0, 1)}
    return ["" if number in near else line for number, line in enumerate(lines)]


def _concerns(check: Check, names: frozenset[str]) -> bool:
    called = set(called_names(check.call))
    for line in check.setup:
        called |= set(called_names(line.split("=", 1)[-1])) | set(called_names(line))
    return bool(called & names) if names else bool(called)


def _without_contradictions(checks: list[Check]) -> tuple[Check, ...]:
    first: dict[tuple[tuple[str, ...], str], Check] = {}
    contradicted = set()
    for check in checks:
        earlier = first.setdefault(check.key, check)
        if not earlier.agrees(check):
            contradicted.add(check.key)
    return tuple(check for key, check in first.items() if key not in contradicted)


def _read_session(lines: list[str], position: int) -> tuple[int, list[Check]]:
    """Read one interpreter session; statements without a result set up the later calls."""
    checks: list[Check] = []
    setup: list[str] = []
    while position < len(lines) and ">>>" in lines[position]:
        source = lines[position].split(">>>", 1)[1].strip()
        position += 1
        while position < len(lines) and lines[position].strip().startswith("... "):
            source += "\n" + lines[position].strip()[4:]
            position += 1
        shown: list[str] = []
        while position < len(lines) and _is_output(lines[position]):
            shown.append(lines[position].strip().rstrip("`"))
            position += 1
        check = _from_output(source, shown, tuple(setup))
        if check:
            checks.append(check)
        elif not shown and "\n" not in source and _is_statement(source):
            setup.append(source)
        if position + 1 < len(lines) and not lines[position].strip():
            position += ">>>" in lines[position + 1]
    return position, [_self_contained(check) for check in checks]


def _is_output(line: str) -> bool:
    stripped = line.strip()
    return bool(stripped) and ">>>" not in stripped and not stripped.startswith(("```", "|", "#"))


def _is_statement(source: str) -> bool:
    return is_application(re.sub(r"^[A-Za-z_]\w*\s*=(?!=)\s*", "", source)) or bool(
        re.match(r"^[A-Za-z_]\w*\s*=(?!=)", source) and is_value(source.split("=", 1)[1])
    )


def _self_contained(check: Check) -> Check:
    """Drop set-up that the call does not use, so that equal checks compare equal."""
    used = set(re.findall(r"[A-Za-z_]\w*", check.call))
    names = {line.split("=", 1)[0].strip() for line in check.setup if re.match(r"\w+\s*=", line)}
    return (
        check
        if used & names
        else Check(check.call, check.expected, check.raises, (), check.stated, check.quote)
    )


def _from_output(source: str, shown: list[str], setup: tuple[str, ...]) -> Check | None:
    printed = re.match(r"^print\((.*)\)$", source, re.DOTALL)
    call = printed.group(1) if printed else source
    if not shown or not is_application(call):
        return None
    quote = f">>> {source} gives {' '.join(shown)}"
    if shown[0].startswith("Traceback"):
        error = _ERROR_NAME.match(shown[-1])
        return Check(call, raises=error.group(1), setup=setup, quote=quote) if error else None
    if printed:
        return Check(f"str({call})", repr("\n".join(shown)), setup=setup, quote=quote)
    value = " ".join(shown)
    return Check(call, value, setup=setup, quote=quote) if is_value(value) else None


def _read_line(line: str) -> list[Check]:
    if line.strip().startswith("assert "):
        asserted = _read_assert(line.strip()[len("assert ") :])
        return [asserted] if asserted else []
    checks = []
    position = 0
    while match := _CALL.search(line, position):
        end = call_end(line, match.start())
        if end < 0:
            position = match.end()
            continue
        call = line[match.start() : end]
        check = _read_consequence(call, line, end) if is_application(call) else None
        if check:
            checks.append(check)
        position = end if check or not called_names(call) else match.end()
    return checks


def _read_assert(text: str) -> Check | None:
    text = re.split(r"\s+#", text, maxsplit=1)[0].strip()
    for joint in (" == ", " is ", "=="):
        for left, right in _splits(text, joint):
            right = right.split(', "')[0].split(", '")[0] if not is_value(right) else right
            if is_application(left) and is_value(right):
                return Check(left.strip(), right.strip(), quote=f"assert {text}")
    negated = text.startswith("not ")
    call = text[4:] if negated else text
    if is_application(call) and "==" not in call:
        return Check(f"bool({call})", str(not negated), quote=f"assert {text}")
    return None


def _splits(text: str, joint: str) -> list[tuple[str, str]]:
    places = [match.start() for match in re.finditer(re.escape(joint), text)]
    return [(text[:place], text[place + len(joint) :]) for place in places]


def _read_consequence(call: str, line: str, end: int) -> Check | None:
    rest = line[end:]
    quote = line.strip().strip("|-* ")[:200]
    error = _RAISES.search(rest[:60])
    if error and not _CALL.search(rest[: error.start()]):
        return Check(call, raises=error.group(1), quote=quote)
    joint = _LEADS_TO.match(rest)
    if not joint or not joint.group().strip(" `*,"):
        return None
    value = _leading_value(rest[joint.end() :], quoted=joint.group().rstrip(" ").endswith("`"))
    if value:
        return Check(call, value, quote=quote)
    error = _ERROR_NAME.match(rest[joint.end() :])
    return Check(call, raises=error.group(1), quote=quote) if error else None


def _leading_value(text: str, quoted: bool) -> str:
    """Take the longest leading text that is a value."""
    text = text.split("`", 1)[0] if quoted or "`" in text else text
    text = text.split(" | ", 1)[0].rstrip().rstrip("|").rstrip()
    candidates = [text.rstrip(".,;:!")]
    cuts = [match.start() for match in re.finditer(r"[\s,;.]", text)]
    candidates.extend(text[:cut] for cut in reversed(cuts))
    for candidate in candidates[:80]:
        if candidate and is_value(candidate) and not _cut_number(candidate, text):
            return candidate.strip()
    return ""


def _cut_number(candidate: str, text: str) -> bool:
    following = text[len(candidate) :]
    return bool(re.match(r"[.]\d|\w", following)) or bool(re.match(r",\s*[-\d'\"\[({]", following))


def _read_value_tables(lines: list[str], function: str) -> list[Check]:
    """Read Markdown tables whose columns are arguments and whose last column is the result."""
    checks = []
    for number, line in enumerate(lines[1:], start=1):
        if not re.match(r"^\s*\|?\s*:?-{2,}", line) or "|" not in line:
            continue
        header = _cells(lines[number - 1])
        if len(header) < 2 or not re.search(
            r"result|return|expect|output|answer|value", header[-1], re.IGNORECASE
        ):
            continue
        for row in lines[number + 1 :]:
            cells = _cells(row)
            if not row.strip().startswith("|") or len(cells) != len(header):
                break
            if check := _from_row(cells, function, row.strip()):
                checks.append(check)
    return checks


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("`").strip() for cell in line.strip().strip("|").split("|")]


def _from_row(cells: list[str], function: str, quote: str) -> Check | None:
    *arguments, result = cells
    call = f"{function}({', '.join(arguments)})"
    if any(f"{function}(" in argument for argument in arguments) or not is_application(call):
        return None
    if not all(is_value(argument) for argument in arguments):
        return None
    error = _RAISES.search(result) or _ERROR_NAME.match(result)
    if error:
        return Check(call, raises=error.group(1), quote=quote)
    return Check(call, result, quote=quote) if is_value(result) else None
