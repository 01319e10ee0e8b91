"""Worked examples in prose and code: every check that a text states."""

from __future__ import annotations

import re
from collections.abc import Iterable

from workers.builtin_coder.check import Check
from workers.builtin_coder.consequence import ERROR_NAME, consequence
from workers.builtin_coder.notation import (
    call_end,
    called_names,
    free_names,
    is_application,
    is_value,
)
from workers.builtin_coder.tables import read_named_values, read_value_tables

ELISION = re.compile(
    r"\[[^\]\n]{0,80}\b(?:elided|omitted|truncated|cut|left out)\b[^\]\n]{0,80}\]|"
    r"(?:\.\.\.|…)[^\n]{0,60}\b(?:elided|omitted|truncated)\b[^\n]{0,60}",
    re.IGNORECASE,
)
_CALL = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*\(")
_ASSIGNED = re.compile(r"^[A-Za-z_]\w*\s*=(?!=)")


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
        else:
            found.extend(_read_line(lines[position]))
            position += 1
    if len(names) == 1:
        only = next(iter(names))
        found.extend(read_value_tables(lines, only))
        found.extend(read_named_values(lines, only))
    wanted = [check for check in found if _closed(check) and _concerns(check, names)]
    return _without_contradictions(wanted)


def _whole_lines(text: str) -> list[str]:
    lines = text.splitlines()
    marked = {number for number, line in enumerate(lines) if ELISION.search(line)}
    near = {number + step for number in marked for step in (-1, 0, 1)}
    return ["" if number in near else line for number, line in enumerate(lines)]


def _concerns(check: Check, names: frozenset[str]) -> bool:
    called = set(called_names(check.call))
    for line in check.setup:
        called |= set(called_names(_value_of(line)))
    return bool(called & names) if names else bool(called)


def _value_of(line: str) -> str:
    return line.split("=", 1)[1] if _ASSIGNED.match(line) else line


def _closed(check: Check) -> bool:
    """Tell whether every value in the check is a literal, a result or set up before it."""
    own: set[str] = set()
    for line in (*check.setup, check.call):
        if free_names(_value_of(line)) - own:
            return False
        if _ASSIGNED.match(line):
            own.add(line.split("=", 1)[0].strip())
    return True


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
        check = _from_output(source, shown, tuple(setup)) if shown else _compared(source)
        if check:
            checks.append(check)
        elif not shown and "\n" not in source and _is_statement(source):
            setup.append(source)
        if position + 1 < len(lines) and not lines[position].strip():
            position += ">>>" in lines[position + 1]
    return position, [_self_contained(check) for check in checks]


def _compared(source: str) -> Check | None:
    """Read `f(1) == 2` typed without its output."""
    return _read_assert(source) if "==" in source else None


def _is_output(line: str) -> bool:
    stripped = line.strip()
    return bool(stripped) and ">>>" not in stripped and not stripped.startswith(("```", "|", "#"))


def _is_statement(source: str) -> bool:
    if _ASSIGNED.match(source):
        value = _value_of(source)
        return is_application(value) or is_value(value)
    return is_application(source)


def _self_contained(check: Check) -> Check:
    """Drop set-up that the call does not use, so that equal checks compare equal."""
    used = set(re.findall(r"[A-Za-z_]\w*", check.call))
    names = {line.split("=", 1)[0].strip() for line in check.setup if _ASSIGNED.match(line)}
    if used & names:
        return check
    return Check(check.call, check.expected, check.raises, quote=check.quote)


def _from_output(source: str, shown: list[str], setup: tuple[str, ...]) -> Check | None:
    printed = re.match(r"^print\((.*)\)$", source, re.DOTALL)
    call = printed.group(1) if printed else source
    if not is_application(call):
        return None
    quote = f">>> {source} gives {' '.join(shown)}"[:200]
    if shown[0].startswith("Traceback"):
        error = ERROR_NAME.match(shown[-1])
        return Check(call, raises=error.group(1), setup=setup, quote=quote) if error else None
    if printed:
        return Check(f"str({call})", repr("\n".join(shown)), setup=setup, quote=quote)
    value = " ".join(shown)
    return Check(call, value, setup=setup, quote=quote) if is_value(value) else None


def _read_line(line: str) -> list[Check]:
    if line.strip().startswith("assert "):
        asserted = _read_assert(line.strip()[len("assert ") :])
        if asserted:
            return [asserted]
    checks = []
    position = 0
    quote = line.strip().strip("|-* ")[:200]
    while match := _CALL.search(line, position):
        end = call_end(line, match.start())
        call = line[match.start() : end] if end > 0 else ""
        check = consequence(call, line[end:], quote) if is_application(call) else None
        if check:
            checks.append(check)
        position = end if check else match.end()
    return checks


def _read_assert(text: str) -> Check | None:
    text = re.split(r"\s+#", text, maxsplit=1)[0].strip()
    for joint in (" == ", " is ", "=="):
        for left, right in _splits(text, joint):
            before_message = re.split(r", f?['\"]", right, maxsplit=1)[0]
            right = before_message if is_value(before_message) else right
            if is_application(left) and is_value(right):
                return Check(left.strip(), right.strip(), quote=f"assert {text}"[:200])
    negated = text.startswith("not ")
    call = text[4:] if negated else text
    if is_application(call) and not re.search(r"[<>]|[!=]=|=>|->", call):
        return Check(f"bool({call})", str(not negated), quote=f"assert {text}"[:200])
    return None


def _splits(text: str, joint: str) -> list[tuple[str, str]]:
    places = [match.start() for match in re.finditer(re.escape(joint), text)]
    return [(text[:place], text[place + len(joint) :]) for place in places]
