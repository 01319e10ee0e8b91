"""One-shot answers: who is at fault in a disagreement, and which result a requirement supports."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from workers.builtin_coder.check import Check
from workers.builtin_coder.conversation import Conversation
from workers.builtin_coder.examples import read_examples
from workers.builtin_coder.flavour import Flavour
from workers.builtin_coder.notation import equal_values, normal
from workers.builtin_coder.suite_text import read_failures, read_suite


def section(text: str, title: str) -> str:
    """Text below one `## title` heading, up to the next heading outside a fence."""
    lines, inside, fence = [], False, ""
    for line in text.splitlines():
        ticks = re.match(r"^`{3,}", line)
        if ticks:
            fence = "" if fence == ticks.group() else fence or ticks.group()
        if not fence and re.match(r"^## ", line):
            inside = line[3:].startswith(title)
            continue
        if inside:
            lines.append(line)
    return "\n".join(lines).strip()


def answer_review(seen: Conversation, flavour: Flavour) -> str:
    """Decide by the requirement's examples; a failing check that none of them supports is weak."""
    requirement = section(seen.brief, "Requirement") or seen.requirement
    suite = section(seen.brief, "Suite")
    output = section(seen.brief, "Output")
    examples = read_examples(requirement)
    failing = read_failures(output)
    for check, _ in failing:
        example = next((e for e in examples if e.key == check.key), None)
        if example is not None:
            at_fault = "repair" if example.agrees(check) else "suite"
            return _verdict(at_fault, check.call, example.wanted, example.quote)
    contradicted = _contradicted(read_suite(suite), examples)
    if contradicted:
        wanted = contradicted.wanted
        return _verdict("suite", contradicted.call, wanted, contradicted.quote)
    return _without_example(failing, flavour)


def _without_example(failing: Sequence[tuple[Check, str]], flavour: Flavour) -> str:
    """No example decides: a check taken from a program is at fault, one from a document holds."""
    for check, _ in failing:
        if check.stated:
            sentence = "a worked example among the program's documents states it"
            return _verdict("repair", check.call, check.wanted, sentence)
    if failing and flavour.name != "bold":
        check, got = failing[0]
        return _verdict("suite", check.call, got, "")
    return _verdict("unclear", failing[0][0].call if failing else "", "", "")


def _contradicted(checks: Sequence[Check], examples: Sequence[Check]) -> Check | None:
    """The example that some check of a suite contradicts."""
    known = {check.key: check for check in checks}
    for example in examples:
        other = known.get(example.key)
        if other is not None and not other.agrees(example):
            return example
    return None


def _example_of(call: str, examples: Sequence[Check]) -> Check | None:
    spelled = normal(call)
    return next((e for e in examples if not e.setup and normal(e.call) == spelled), None)


def _verdict(at_fault: str, call: str, expected: str, sentence: str) -> str:
    return _fenced(
        {"at_fault": at_fault, "input": call, "expected": expected, "sentence": sentence[:300]}
    )


def answer_challenge(seen: Conversation) -> str:
    """Name the result that an example of the requirement states; leave anything else open."""
    requirement = section(seen.brief, "Requirement") or seen.requirement
    call = section(seen.brief, "Call").strip("`\n ")
    results = re.findall(
        r"^([A-Z]):\s*\n+(`{3,})[^\n]*\n(.*?)\n\2",
        section(seen.brief, "Results"),
        re.MULTILINE | re.DOTALL,
    )
    example = _example_of(call, read_examples(requirement))
    if example is not None:
        wanted = example.wanted
        for letter, _, shown in results:
            if equal_values(shown, wanted) or (example.raises and example.raises in shown):
                return _fenced({"expected": letter, "input": call, "sentence": example.quote[:300]})
    letter, sentence = _by_range(call, requirement, [(x, shown) for x, _, shown in results])
    return _fenced({"expected": letter, "input": call, "sentence": sentence})


def _by_range(call: str, requirement: str, results: list[tuple[str, str]]) -> tuple[str, str]:
    """Prefer a named error when the requirement promises it and only one result raises it."""
    promised = re.findall(r"\b[A-Z]\w*Error\b", requirement)
    raising = [(x, shown) for x, shown in results if any(e in shown for e in promised)]
    empty = re.search(r"\(\s*(\[\]|''|\"\"|\{\}|\(\))", call)
    for sentence in re.split(r"(?<=[.;])\s+|\n", requirement):
        if empty and re.search(r"\bempty\b", sentence, re.IGNORECASE):
            stated = [x for x, shown in results if f"`{shown.strip()}`" in sentence]
            if len(stated) == 1:
                return stated[0], sentence.strip()[:300]
            if len(raising) == 1 and re.search(r"\b[A-Z]\w*Error\b", sentence):
                return raising[0][0], sentence.strip()[:300]
    return "unclear", ""


def _fenced(answer: dict[str, str]) -> str:
    return f"```json\n{json.dumps(answer, ensure_ascii=False)}\n```"
