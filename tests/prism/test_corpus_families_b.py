"""Families of text and table tasks: their programs agree, their slips and facets show."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Mapping
from typing import Any

import pytest

from rsi.prism.corpus import (
    brackets,
    dedupe,
    durations,
    fields,
    histograms,
    matrices,
    rota,
    windows,
)
from rsi.prism.corpus.blocks import contract, program
from rsi.prism.corpus.family import Facets, Family

FAMILIES = [
    module.FAMILY
    for module in (brackets, durations, windows, fields, dedupe, matrices, histograms, rota)
]
ALL = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
EXPECTED_SPLITS = {"train": 4, "selection": 1, "release": 1, "test": 2}


def combinations(family: Family) -> list[dict[str, str]]:
    return [
        dict(zip(family.facets, values, strict=True))
        for values in itertools.product(*family.facets.values())
    ]


def some(family: Family, count: int) -> list[dict[str, str]]:
    return random.Random(family.name).sample(combinations(family), count)


def inputs(family: Family) -> list[tuple[Any, ...]]:
    return family.inputs(random.Random(42))


def results(family: Family, source: str, facets: Facets) -> list[str]:
    """What the entry point gives for every input: the value, or the type of the error."""
    namespace: dict[str, Any] = {"__name__": "solution"}
    exec(compile(source, family.name, "exec"), namespace)
    called = namespace[family.entry_point(facets)]
    seen = []
    for arguments in inputs(family):
        try:
            seen.append(repr(called(*copy.deepcopy(arguments))))
        except Exception as error:
            seen.append(type(error).__name__)
    return seen


def reference(family: Family, facets: Facets) -> list[str]:
    return results(family, family.algorithms[0](facets), facets)


def neighbours(family: Family, facets: Mapping[str, str]) -> list[dict[str, str]]:
    return [
        {**facets, facet: value}
        for facet, values in family.facets.items()
        for value in values
        if value != facets[facet]
    ]


@ALL
def test_all_algorithms_of_a_combination_agree_on_every_input(family: Family) -> None:
    assert len(family.algorithms) >= 5
    for facets in some(family, 8):
        expected = reference(family, facets)
        for algorithm in family.algorithms[1:]:
            found = results(family, algorithm(facets), facets)
            differing = [
                (call, want, got)
                for call, want, got in zip(inputs(family), expected, found, strict=True)
                if want != got
            ]
            assert not differing, (facets, family.algorithms.index(algorithm), differing[:3])


@ALL
def test_every_facet_change_shows_in_some_result(family: Family) -> None:
    for facets in some(family, 4):
        expected = reference(family, facets)
        for other in neighbours(family, facets):
            assert reference(family, other) != expected, (facets, other)


@ALL
def test_slips_show_in_nine_of_ten_combinations(family: Family) -> None:
    assert len(family.slips) >= 5
    chosen = some(family, 10)
    expected = [reference(family, facets) for facets in chosen]
    for number, slip in enumerate(family.slips):
        shown = sum(
            results(family, slip(facets), facets) != wanted
            for facets, wanted in zip(chosen, expected, strict=True)
        )
        assert shown >= 9, (number, shown)


@ALL
def test_errors_are_the_exception_and_not_the_rule(family: Family) -> None:
    known = {"ValueError", "KeyError", "TypeError"}
    for facets in some(family, 6):
        seen = reference(family, facets)
        raised = [result for result in seen if result.endswith("Error")]
        assert set(raised) <= known
        assert len(raised) <= 0.6 * len(seen)
        assert 30 <= len(seen) <= 80


@ALL
def test_eleven_siblings_differ_pairwise_in_two_facets(family: Family) -> None:
    assert 3 <= len(family.facets) <= 6
    kept: list[dict[str, str]] = []
    for facets in combinations(family):
        if all(sum(facets[f] != other[f] for f in facets) >= 2 for other in kept):
            kept.append(facets)
    assert len(kept) >= 11


@ALL
def test_the_contract_states_each_facet_and_names_the_entry_point(family: Family) -> None:
    for facets in some(family, 4):
        text = family.instruction(facets)
        assert f"`{family.entry_point(facets)}(" in text
        assert "<<" not in text.replace("`<<", "")
        assert text.count("\n- ") == len(family.facets)
        for other in neighbours(family, facets):
            assert family.instruction(other) != text


@ALL
def test_inputs_are_the_same_for_the_same_seed(family: Family) -> None:
    assert inputs(family) == inputs(family)


def test_families_are_split_whole_and_have_their_own_names() -> None:
    splits = [family.split for family in FAMILIES]
    assert {split: splits.count(split) for split in EXPECTED_SPLITS} == EXPECTED_SPLITS
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


HOLES = {
    "guard": ("empty", {"refused": "if not x:\n    raise ValueError", "fine": ""}),
    "both": ("empty order", {"refused up": "1", "fine up": "2", "fine down": "3"}),
}


def render(text: str, **facets: str) -> str:
    return program(text, HOLES, lambda chosen: "named_" + chosen["order"])(facets)


def test_a_hole_alone_on_its_line_takes_whole_indented_lines() -> None:
    text = "\ndef <<entry>>(x):\n    <<guard>>\n    return <<both>>\n"
    assert render(text, empty="refused", order="up") == (
        "def named_up(x):\n    if not x:\n        raise ValueError\n    return 1\n"
    )


def test_an_empty_text_drops_the_line_of_its_hole() -> None:
    text = "def <<entry>>(x):\n    <<guard>>\n    return <<both>>\n"
    assert render(text, empty="fine", order="down") == "def named_down(x):\n    return 3\n"


def test_unknown_holes_and_facet_values_are_refused() -> None:
    with pytest.raises(KeyError, match="other"):
        render("<<other>>", empty="fine", order="up")
    with pytest.raises(KeyError, match="refused down"):
        render("<<both>>", empty="refused", order="down")


def test_a_contract_is_its_opening_and_one_bullet_for_each_facet() -> None:
    clauses = {"b": {"x": "First."}, "a": {"y": "Second.", "z": "Third."}}
    text = contract("\nWrite `<<entry>>(n)`.\n", clauses, lambda facets: "f_" + facets["a"])
    assert text({"a": "z", "b": "x"}) == "Write `f_z(n)`.\n\n- First.\n- Third.\n"
