"""Examples that name values instead of a call: tables, `For a = 1, ...`, Input and Output."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workers.builtin_coder.check import Check
from workers.builtin_coder.consequence import ERROR_NAME, leading_value
from workers.builtin_coder.notation import is_application, is_value

_RESULT_COLUMN = re.compile(r"result|return|expect|output|answer|value|gives", re.IGNORECASE)
_NAMED = re.compile(r"\b([A-Za-z_]\w*)\s*=(?!=)\s*")
_OUTCOME = re.compile(
    r"(?:result|output|answer|return(?:s|ed)?|gives?|yields?|->|=>|[→⇒➞])"
    r"[^'\"\[({\d`TFN-]{0,24}[`\s]*",
    re.IGNORECASE,
)


def read_value_tables(lines: Sequence[str], function: str) -> list[Check]:
    """Read Markdown tables whose columns are arguments and whose last column is the result."""
    checks = []
    for number, line in enumerate(lines[1:], start=1):
        if not re.match(r"^\s*\|?\s*:?-{2,}", line) or "|" not in line:
            continue
        header = _cells(lines[number - 1])
        if len(header) < 2 or not _RESULT_COLUMN.search(header[-1]):
            continue
        for row in lines[number + 1 :]:
            cells = _cells(row)
            if not row.strip().startswith("|") or len(cells) != len(header):
                break
            if check := _from_row(cells, function, row.strip()):
                checks.append(check)
    return checks


def read_named_values(lines: Sequence[str], function: str) -> list[Check]:
    """Read `For a = 1, b = 2 the result is 3` and `Input: 1, 2` above or before `Output: 3`."""
    checks = []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        check = _from_named(line, function) or _from_input(line, following, function)
        if check:
            checks.append(check)
    return checks


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("`").strip() for cell in line.strip().strip("|").split("|")]


def _from_row(cells: list[str], function: str, quote: str) -> Check | None:
    *arguments, result = cells
    if not all(is_value(argument) for argument in arguments):
        return None
    return _outcome(f"{function}({', '.join(arguments)})", result, quote)


def _outcome(call: str, result: str, quote: str) -> Check | None:
    if not is_application(call):
        return None
    if is_value(result):
        return Check(call, result, quote=quote[:200])
    error = ERROR_NAME.match(result.removeprefix("raises ").strip())
    return Check(call, raises=error.group(1), quote=quote[:200]) if error else None


def _from_named(line: str, function: str) -> Check | None:
    if not re.match(r"^\W*(?:for|with|if|when|given)\b", line, re.IGNORECASE):
        return None
    given: dict[str, str] = {}
    end = 0
    for name in _NAMED.finditer(line):
        value = leading_value(line[name.end() :], quoted=line[name.end() - 1] == "`")
        value = value or _first_value(line[name.end() :])
        if not value:
            break
        given[name.group(1)] = value
        end = name.end() + len(value)
    result = _OUTCOME.search(line, end) if given else None
    if result is None:
        return None
    expected = leading_value(line[result.end() :], quoted=line[result.end() - 1] == "`")
    arguments = ", ".join(f"{name}={value}" for name, value in given.items())
    return _outcome(f"{function}({arguments})", expected, line.strip()) if expected else None


def _from_input(line: str, following: str, function: str) -> Check | None:
    start = re.match(r"^\W*input\W*:\W??\s*`?(.+)$", line, re.IGNORECASE)
    if not start:
        return None
    parts = re.split(r"[`\s,;]*\boutput\b[*\s]*:[*\s]*`?", start.group(1), flags=re.IGNORECASE)
    if len(parts) == 1:
        below = re.match(r"^\W*output\W*:\W??\s*`?(.+)$", following, re.IGNORECASE)
        parts.append(below.group(1) if below else "")
    given = parts[0].strip().rstrip("`").strip()
    call = f"{function}({given})"
    if not is_value(f"[{given}]"):
        return None
    return _outcome(call, leading_value(parts[1], quoted="`" in parts[1]), line.strip())


def _first_value(text: str) -> str:
    """The first value of a list of values, up to a comma that is not inside it."""
    for comma in (match.start() for match in re.finditer(r",|\s", text)):
        if is_value(text[:comma]):
            return text[:comma]
    return ""
