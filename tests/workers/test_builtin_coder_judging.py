from __future__ import annotations

import json

import pytest

from workers.builtin_coder import reply
from workers.builtin_coder.check import Check
from workers.builtin_coder.judgement import section
from workers.builtin_coder.suite_text import write_suite

REQUIREMENT = (
    "`f(n)` doubles.\n\n- `f(1)` -> `2`\n- `f(-1)` raises `ValueError`\n\n"
    "For an empty list `f([])` it is open. An empty text gives `0`."
)


def answer(text: str, style: str = "careful", most: int = 512) -> dict[str, str]:
    messages = [
        {"role": "system", "content": f"You are reviewer. You are {style}: x."},
        {"role": "user", "content": text},
    ]
    said = reply(messages, (), 1, most).text
    assert said.startswith("```json\n") and said.endswith("\n```")
    value = json.loads(said[8:-4])
    assert isinstance(value, dict)
    return value


def review(row: str, got: str, suite: str = "") -> str:
    return (
        f"# Review\n\n## Requirement\n{REQUIREMENT}\n\n## Suite\n\n```\n{suite}\n```\n\n"
        f"## Repair\n\n```\n## Requirement\nf(1) -> 99\n```\n\n"
        f"## Output of the suite on the repair: REJECT\n\n"
        f"```\n({row}), got {got}\n```\n\n## Answer\n"
    )


def test_a_repair_that_breaks_an_example_is_at_fault() -> None:
    found = answer(review("lambda: f(1), 2, '', 'derived'", "3"))
    assert found["at_fault"] == "repair"
    assert (found["input"], found["expected"]) == ("f(1)", "2")
    assert "`f(1)` -> `2`" in found["sentence"]


def test_a_suite_that_contradicts_an_example_is_at_fault() -> None:
    found = answer(review("lambda: f(1), 3, '', 'stated'", "2"))
    assert (found["at_fault"], found["expected"]) == ("suite", "2")
    found = answer(review("lambda: f(-1), -2, '', 'derived'", "ValueError"))
    assert (found["at_fault"], found["expected"]) == ("suite", "ValueError")


def test_a_contradiction_that_did_not_show_in_the_output_is_found_in_the_suite() -> None:
    suite = write_suite([Check("f(1)", "5")], {}, "solution", 9_000)
    found = answer(review("lambda: f(8), 16, '', 'derived'", "17", suite))
    assert (found["at_fault"], found["input"], found["expected"]) == ("suite", "f(1)", "2")


def test_a_derived_check_without_support_is_at_fault_and_a_stated_one_is_not() -> None:
    row = "lambda: f(7), 15, '', '{}'"
    assert answer(review(row.format("stated"), "14"))["at_fault"] == "repair"
    derived = answer(review(row.format("derived"), "14"))
    assert (derived["at_fault"], derived["expected"]) == ("suite", "14")
    assert answer(review(row.format("derived"), "14"), "bold")["at_fault"] == "unclear"


def test_output_that_says_nothing_leaves_the_review_unclear() -> None:
    text = review("nothing", "x").replace("(nothing), got x", "Killed")
    assert answer(text)["at_fault"] == "unclear"


def challenge(call: str, *results: str) -> str:
    shown = "\n\n".join(
        f"{letter}:\n\n```\n{text}\n```" for letter, text in zip("ABC", results, strict=False)
    )
    return (
        f"# Challenge\n\n## Requirement\n{REQUIREMENT}\n\n## Call\n\n```\n{call}\n```\n\n"
        f"## Results\n\n{shown}\n\n## Answer\nName the letter.\n"
    )


@pytest.mark.parametrize(
    ("call", "results", "letter"),
    [
        ("f(1)", ("3", "2"), "B"),
        ("f( 1 )", ("2", "3"), "A"),
        ("f(-1)", ("-2", "-3", "raises ValueError"), "C"),
        ("f(5)", ("10", "11"), "unclear"),
        ("f('')", ("''", "0"), "B"),
        ("f([])", ("1", "2"), "unclear"),
    ],
)
def test_a_challenge_is_settled_by_the_requirement_or_left_open(
    call: str, results: tuple[str, ...], letter: str
) -> None:
    found = answer(challenge(call, *results))
    assert found["expected"] == letter
    assert bool(found["sentence"]) == (letter != "unclear")


def test_a_short_limit_cuts_the_review() -> None:
    messages = [{"role": "user", "content": review("lambda: f(1), 2, '', 'stated'", "3")}]
    cut = reply(messages, (), 1, 16)
    assert cut.finish_reason == "length"
    assert len(cut.text) == 64


def test_headings_inside_a_fence_are_not_sections() -> None:
    text = "## A\none\n```\n## B\ninside\n```\n## B\ntwo\n## C\n"
    assert section(text, "A") == "one\n```\n## B\ninside\n```"
    assert section(text, "B") == "two"
    assert section(text, "D") == ""
