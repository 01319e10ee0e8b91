"""Every failed rollout gets one name of the taxonomy."""

from __future__ import annotations

import pytest

from rsi.helix.label import LABELS, label_of
from rsi.prism.suite import Suite
from rsi.prism.tree import Tree
from rsi.records import Solution
from rsi.trajectory import Symptoms
from tests.builders import outcome, shell_suite

FOUND = Solution(suite=shell_suite("exit 1"))
NOTHING = Solution(suite=Suite(tree=Tree()))
GARBLED = NOTHING.updated(symptoms=Symptoms(malformed_replies=3))
CONTRADICTED = FOUND.updated(fallback="best single pair", verdicts_kk=(("ACCEPT", "REJECT"),))


@pytest.mark.parametrize(
    ("verdicts", "solution", "label"),
    [
        ({}, FOUND, ""),
        ({"valid": "AAAA", "invalid": "RRRRR"}, FOUND, ""),
        ({"g": "INFRA"}, FOUND, ""),
        ({"valid": "AI", "invalid": "A"}, FOUND, ""),
        ({"b": "SUITE_ERROR", "g": "SUITE_ERROR"}, NOTHING, "untested requirement"),
        ({"b": "SUITE_ERROR", "g": "SUITE_ERROR"}, GARBLED, "command or parsing"),
        ({"b": "SUITE_ERROR"}, FOUND, "command or parsing"),
        ({"g": "SUITE_ERROR"}, FOUND, "command or parsing"),
        ({"b": "TIMEOUT"}, FOUND, "fixture or API"),
        ({"g": "RESOURCE"}, FOUND, "fixture or API"),
        ({"invalid": "RRT"}, FOUND, "fixture or API"),
        ({"g": "TAMPER"}, FOUND, "fixture or API"),
        ({"g": "REJECT"}, FOUND, "wrong oracle"),
        ({"g": "REJECT", "valid": "RRRR"}, FOUND, "wrong oracle"),
        ({"g": "REJECT", "reason": "unknown"}, FOUND, "wrong oracle"),
        ({"g": "REJECT", "reason": "import"}, FOUND, "fixture or API"),
        ({"g": "REJECT", "reason": "crash"}, FOUND, "fixture or API"),
        ({"g": "REJECT", "reason": "collection"}, FOUND, "command or parsing"),
        ({"g": "REJECT"}, CONTRADICTED, "over-fitted"),
        ({"g": "REJECT"}, CONTRADICTED.updated(fallback=""), "wrong oracle"),
        ({"g": "REJECT", "valid": "RR"}, CONTRADICTED, "wrong oracle"),
        ({"g": "REJECT", "valid": "RAR"}, FOUND, "over-fitted"),
        ({"valid": "AARA", "invalid": "RAR"}, FOUND, "over-fitted"),
        ({"b": "ACCEPT"}, FOUND, "missed input"),
        ({"b": "ACCEPT", "g": "REJECT"}, FOUND, "wrong oracle"),
        ({"b": "ACCEPT", "invalid": "AAA"}, FOUND, "missed input"),
        ({"invalid": "RAR"}, FOUND, "missed input"),
        ({"invalid": "AAA"}, FOUND, "untested requirement"),
        ({"invalid": "RAR", "reason": "import"}, FOUND, "weak assertion"),
        ({"invalid": "AAA", "reason": "crash"}, FOUND, "weak assertion"),
    ],
)
def test_the_verdict_pattern_decides(
    verdicts: dict[str, str], solution: Solution, label: str
) -> None:
    assert label_of(outcome(**verdicts), solution) == label  # type: ignore[arg-type]
    assert label in ("", *LABELS)


def test_without_an_outcome_there_is_no_label() -> None:
    assert label_of(None, NOTHING) == ""
