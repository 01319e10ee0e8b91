"""How the embedded corpus is generated, labelled, shipped and checked when it is loaded."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from rsi.errors import BenchmarkError
from rsi.prism.corpus import assemble_corpus, engine, labels, load_families, load_kata, running
from rsi.prism.corpus.candidates import Candidate, Origin, examine, valid_programs, wrong_programs
from rsi.prism.corpus.examples import ExampleChooser, Exposure, block, document, example, style_for
from rsi.prism.corpus.family import Facets, Family, altered, fill, template
from rsi.prism.corpus.running import Overrun, Result, call, fresh, mutable, observe, program
from rsi.prism.corpus.selection import Chosen, common_checks, confusable
from rsi.prism.corpus.siblings import Calls, Sibling, combinations, distance, prelude
from rsi.prism.corpus.verifier_prelude import _eq, _raises


def shift(facets: Facets) -> dict[str, str]:
    return {"op": facets["op"], "n": facets["n"], "name": "add" if facets["op"] == "+" else "cut"}


def toy(**changes: Any) -> Family:
    """A family of one-line programs: shift each number of a list, drop some, keep the sign."""
    first = template("def <<name>>(xs):\n    return [x <<op>> <<n>> for x in xs]\n", shift)
    second = template(
        "def <<name>>(xs):\n    out = []\n    for x in xs:\n        out.append(x <<op>> <<n>>)\n"
        "    return out\n",
        shift,
    )
    fields: dict[str, Any] = {
        "name": "toy",
        "split": "train",
        "entry_point": lambda facets: "add" if facets["op"] == "+" else "cut",
        "facets": {"op": ("+", "-"), "n": ("1", "2", "3"), "extra": ("x", "y")},
        "instruction": lambda facets: "Shift the numbers.",
        "algorithms": (first, second),
        "slips": (altered(first, "for x in xs", "for x in xs[1:]"), altered(first, "zzz", "")),
        "inputs": lambda rng: [([],), ([1],), ([rng.randint(0, 99), 2],), ([],)],
    }
    return Family(**{**fields, **changes})


FACETS = {"op": "+", "n": "1", "extra": "x"}


def sibling(family: Family, facets: Facets, number: int = 1, position: int = 0) -> Sibling:
    calls = Calls(family)
    want = observe(family.algorithms[0](facets), family.entry_point(facets), calls.pool)
    return Sibling(family, position, number, facets, calls, want)


@pytest.fixture(scope="module")
def shipped() -> dict[str, Any]:
    return labels.read_labels()


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less for programs that never return."""
    monkeypatch.setattr(running, "CALL_SECONDS", 0.05)


def one_family(shipped: dict[str, Any]) -> tuple[tuple[Family, ...], dict[str, Any]]:
    family = load_families()[0]
    own = [t for t in shipped["tasks"] if t["task_id"].startswith(f"kata-{family.name}-")]
    return (family,), copy.deepcopy({**shipped, "tasks": own})


# loading -----------------------------------------------------------------------------------


def test_loading_twice_gives_the_same_tasks_and_the_list_is_the_callers_own() -> None:
    first = load_kata()
    first.pop()
    again = load_kata()
    assert len(again) == len(first) + 1
    assert again[0] is first[0]


def test_loading_keeps_family_order_and_numbers_siblings_from_one() -> None:
    ids = [task.task_id for task, _ in load_kata()]
    names = [family.name for family in load_families()]
    assert list(dict.fromkeys(i.rpartition("-")[0].removeprefix("kata-") for i in ids)) == names
    assert [i for i in ids if i.startswith("kata-ledger-")][:2] == [
        "kata-ledger-01",
        "kata-ledger-02",
    ]


def test_evidence_that_fits_gives_the_loaded_tasks(shipped: dict[str, Any]) -> None:
    assert assemble_corpus(*one_family(shipped)) == load_kata()[:12]


def test_a_program_digest_that_does_not_fit_is_refused(shipped: dict[str, Any]) -> None:
    families, own = one_family(shipped)
    own["tasks"][3]["implementations"][7]["program_digest"] = "0" * 64
    with pytest.raises(BenchmarkError, match=r"kata-intervals-04: program i2 does not fit"):
        assemble_corpus(families, own)


def test_a_check_digest_that_does_not_fit_is_refused(shipped: dict[str, Any]) -> None:
    families, own = one_family(shipped)
    own["tasks"][0]["checks_digest"] = "0" * 64
    with pytest.raises(BenchmarkError, match=r"kata-intervals-01: checks do not fit"):
        assemble_corpus(families, own)


def test_another_choice_of_examples_does_not_fit_the_digests(shipped: dict[str, Any]) -> None:
    families, own = one_family(shipped)
    own["tasks"][0]["document_examples"].reverse()
    with pytest.raises(BenchmarkError, match="does not fit the evidence"):
        assemble_corpus(families, own)


def test_a_changed_generator_is_noticed(shipped: dict[str, Any]) -> None:
    (family,), own = one_family(shipped)
    first, *others = family.algorithms
    changed = Family(
        **{**family.__dict__, "algorithms": (altered(first, "merged", "joined"), *others)}
    )
    with pytest.raises(BenchmarkError, match="does not fit the evidence"):
        assemble_corpus((changed,), own)


def test_evidence_without_a_registered_family_is_refused(shipped: dict[str, Any]) -> None:
    families, own = one_family(shipped)
    with pytest.raises(BenchmarkError, match="no task of family ranking"):
        assemble_corpus((*families, load_families()[1]), own)


def test_missing_or_damaged_evidence_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(labels, "files", lambda package: tmp_path)
    with pytest.raises(BenchmarkError, match=r"cannot read labels\.json\.gz"):
        labels.read_labels()
    (tmp_path / "labels.json.gz").write_bytes(b"not gzip")
    with pytest.raises(BenchmarkError, match=r"python -m rsi\.prism\.corpus\.engine"):
        labels.read_labels()


def test_evidence_survives_writing_and_reading(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(labels, "files", lambda package: tmp_path)
    monkeypatch.setattr(labels, "__file__", str(tmp_path / "labels.py"))
    place = labels.write_labels({"tasks": [1]})
    first = place.read_bytes()
    assert labels.read_labels() == {"tasks": [1]}
    assert labels.write_labels({"tasks": [1]}).read_bytes() == first


def test_evidence_says_how_it_was_made_and_holds_no_path(shipped: dict[str, Any]) -> None:
    assert shipped["runs"] == 3 and shipped["format"] == 1
    assert shipped["python"].startswith("3.")
    text = json.dumps(shipped)
    assert "/" not in text and "\\\\" not in text


# labelling ---------------------------------------------------------------------------------


def test_labelling_a_family_again_gives_the_shipped_evidence(shipped: dict[str, Any]) -> None:
    names = [family.name for family in load_families()]
    position = names.index("versions")
    own = [t for t in shipped["tasks"] if t["task_id"].startswith("kata-versions-")]
    built = engine.label_family(load_families()[position], position)
    assert json.loads(json.dumps(built)) == own


def test_valid_programs_that_disagree_are_a_fault_of_the_corpus() -> None:
    family = toy()
    quarrel = toy(algorithms=(family.algorithms[0], family.slips[0]))
    with pytest.raises(BenchmarkError, match=r"algorithm 1 gives .* on \(\[1\],\)"):
        valid_programs(quarrel, FACETS, Calls(quarrel))


@pytest.mark.parametrize(
    "body",
    [
        "xs += [1]; return [x + 1 for x in xs[:-1]]",
        "return tuple(x + 1 for x in xs)",
        "while True: pass",
    ],
)
def test_a_valid_program_may_not_mutate_change_type_or_hang(body: str, brief: None) -> None:
    family = toy()
    bad = toy(algorithms=(family.algorithms[0], lambda facets: f"def add(xs):\n    {body}\n"))
    with pytest.raises(BenchmarkError, match="kata family toy"):
        valid_programs(bad, FACETS, Calls(bad))


def test_too_few_wrong_programs_are_reported() -> None:
    family = toy(algorithms=toy().algorithms * 3)
    with pytest.raises(BenchmarkError, match=r"fewer than 11|too few different wrong programs"):
        engine.label_family(family, 0)


def suspect(family: Family, failed: set[int]) -> Candidate:
    results = observe(family.algorithms[0](FACETS), "add", Calls(family).pool)
    return Candidate(Origin("slip", 0), "", results, frozenset(failed), frozenset())


@pytest.mark.parametrize(("failed", "unfit"), [({0}, 1), ({1}, None), ({0, 1}, 1)])
def test_a_sibling_whose_suites_could_be_right_elsewhere_is_named(
    failed: set[int], unfit: int | None
) -> None:
    family = toy()
    pair = [sibling(family, FACETS), sibling(family, {**FACETS, "op": "-"}, 2)]  # agree on call 0
    good, bad = suspect(family, set()), suspect(family, failed)
    panels = [(Chosen(good, (), (bad,), bad), ())] * 2
    assert engine._confused(pair, panels) == unfit


def test_a_program_that_does_not_repeat_its_results_gets_no_label() -> None:
    turns = iter(range(9))
    family = toy(slips=(lambda facets: f"def add(xs):\n    return [{next(turns)}]\n",))
    place = sibling(family, FACETS)
    found = examine(family, FACETS, Origin("slip", 0), place.calls, place.want)
    assert found is not None
    with pytest.raises(BenchmarkError, match="kata-toy-01: slip 0 does not repeat"):
        engine._repeated(place, found)


def test_a_label_rests_on_three_runs() -> None:
    rendered = []
    family = toy(slips=(lambda facets: rendered.append(1) or "def add(xs):\n    return 0\n",))
    place = sibling(family, FACETS)
    found = examine(family, FACETS, Origin("slip", 0), place.calls, place.want)
    assert found is not None
    assert engine._repeated(place, found) == ["c01", "c02", "c03"]
    assert len(rendered) == 3


def test_a_misread_program_keeps_the_siblings_own_name() -> None:
    source = Origin("algorithm", 0, (("op", "-"),)).source(toy(), FACETS)
    assert source == "def add(xs):\n    return [x - 1 for x in xs]\n"


def test_an_origin_survives_json_and_reads_as_words() -> None:
    origin = Origin("slip", 1, (("n", "2"),))
    assert Origin.from_json(json.loads(json.dumps(origin.to_json()))) == origin
    assert str(origin) == "slip 1, n read as 2"
    assert str(Origin("algorithm", 0)) == "algorithm 0"


def test_wrong_programs_are_those_that_fail_and_come_back(brief: None) -> None:
    family = toy()
    looping = toy(slips=(*family.slips, lambda facets: "def add(xs):\n    while xs: pass\n"))
    calls = Calls(looping)
    want = observe(looping.algorithms[0](FACETS), "add", calls.pool)
    origins = [str(c.origin) for c in wrong_programs(looping, FACETS, calls, want)]
    assert {"algorithm 0, n read as 2", "algorithm 1, n read as 2"} & set(origins)
    assert "slip 0" in origins
    assert "slip 1" not in origins and "slip 2" not in origins
    assert not any("extra" in origin and "algorithm" in origin for origin in origins)


def test_failed_checks_name_the_calls_and_the_mutations() -> None:
    family = toy(slips=(lambda facets: "def add(xs):\n    xs.append(0)\n    return xs[:-1]\n",))
    calls = Calls(family)
    want = observe(family.algorithms[0](FACETS), "add", calls.pool)
    found = examine(family, FACETS, Origin("slip", 0), calls, want)
    assert found is not None
    assert found.failed_checks(calls) == {"c02", "c03", "m01", "m02", "m03"}


# siblings, calls and checks ----------------------------------------------------------------


def test_combinations_keep_a_distance_of_two_and_are_repeatable() -> None:
    family = toy()
    chosen = combinations(family, 4)
    assert len(chosen) == 4 and chosen == combinations(family, 4)
    assert all(distance(a, b) >= 2 for a in chosen for b in chosen if a is not b)
    assert len(combinations(family, 99)) == 4  # no code over 2 x 3 x 2 with distance 2 has more


def test_distance_counts_facets() -> None:
    assert distance({"a": "1", "b": "2"}, {"a": "1", "b": "2"}) == 0
    assert distance({"a": "1", "b": "2"}, {"a": "2", "b": "1"}) == 2


def test_calls_are_checked_once_each_and_spares_are_new() -> None:
    calls = Calls(toy())
    texts = [repr(arguments) for arguments in calls.pool]
    assert len(texts) == len(set(texts))
    assert len(calls.checked) == 3 and calls.checked[:2] == (([],), ([1],))
    assert len(calls.spare) >= 2
    assert calls.mutations == (0, 1, 2)
    assert Calls(toy(inputs=lambda rng: [("a",), (1,)])).mutations == ()


def test_checks_state_values_errors_and_untouched_arguments() -> None:
    family = toy(inputs=lambda rng: [([1],), ("ab",)])
    checks = {c.check_id: c.code for c in sibling(family, FACETS).checks()}
    assert checks["c01"] == "assert _eq(add([1]), [2])"
    assert checks["c02"] == "assert _raises(TypeError, add, 'ab')"
    assert list(checks) == ["c01", "c02", "m01"]
    assert "assert _eq(_given, ([1],))" in checks["m01"]


def test_the_prelude_runs_before_checks_and_imports_the_function() -> None:
    text = prelude("add")
    assert text.endswith("\nfrom solution import add\n")
    assert "__future__" not in text
    assert "def _eq(" in text and "def _raises(" in text


def test_common_checks_are_those_on_which_references_agree() -> None:
    family = toy()
    plus = sibling(family, FACETS)
    same = sibling(family, {**FACETS, "extra": "y"}, 2)
    minus = sibling(family, {**FACETS, "op": "-"}, 3)
    assert common_checks(plus, same) == {"c01", "c02", "c03", "m01", "m02", "m03"}
    assert common_checks(plus, minus) == {"c01", "m01", "m02", "m03"}


def test_siblings_are_confusable_when_common_checks_reject_all_wrong_programs() -> None:
    here, there = [frozenset("ab"), frozenset("b")], [frozenset("bc")]
    assert confusable(here, there, frozenset("b"))
    assert not confusable(here, there, frozenset("a"))
    assert not confusable(here, [frozenset("c")], frozenset("b"))


# running -----------------------------------------------------------------------------------


def test_a_call_gets_its_own_arguments_and_tells_of_changes() -> None:
    arguments = ([1, {"a": [2]}],)
    function = program("def f(xs):\n    xs[1]['a'].append(3)\n    return xs\n", "f")
    result = call(function, arguments)
    assert result.mutated and result.value == [1, {"a": [2, 3]}]
    assert arguments == ([1, {"a": [2]}],)
    assert not call(len, ([1],)).mutated


def test_an_error_is_a_result() -> None:
    assert call(int, ("x",)) == Result(error="ValueError")


def test_an_endless_loop_overruns() -> None:
    source = (
        "def f(x):\n    while True:\n        try:\n            pass\n        except Exception:\n"
    )
    with pytest.raises(Overrun):
        observe(source + "            pass\n", "f", [(1,)])


def test_results_agree_by_value_or_by_error() -> None:
    assert Result(value=0.1 + 0.2).agrees(Result(value=0.3))
    assert not Result(value=1).agrees(Result(value=2))
    assert Result(error="UnicodeError").agrees(Result(error="ValueError"))
    assert not Result(error="ValueError").agrees(Result(error="UnicodeError"))
    assert not Result(value=None).agrees(Result(error="ValueError"))
    assert not Result(error="ValueError").agrees(Result(value=None))
    assert not Result(error="NoSuchError").agrees(Result(error="ValueError"))


def test_fresh_copies_containers_and_mutable_finds_them() -> None:
    value = ({"a": [1]}, [2], "x")
    copied = fresh(value)
    assert copied == value and copied[0] is not value[0] and copied[0]["a"] is not value[0]["a"]
    assert mutable(([],)) and mutable((1, ({},))) and not mutable((1, "a", (2,)))


@pytest.mark.parametrize(
    ("got", "want", "equal"),
    [
        (True, 1, False),
        (1, True, False),
        (True, True, True),
        (1, 1.0, True),
        (2, 3, False),
        (0.1 + 0.2, 0.3, True),
        (0.3001, 0.3, False),
        (1e-10, 0.0, True),
        ([1], (1,), False),
        ([1, 2], [1], False),
        ([[True]], [[1]], False),
        ({"a": 0.1 + 0.2}, {"a": 0.3}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, {"a": 2}, False),
        ("1", 1, False),
        (None, None, True),
        ("a", "b", False),
    ],
)
def test_values_are_equal_by_type_and_within_a_billionth(
    got: object, want: object, equal: bool
) -> None:
    assert _eq(got, want) is equal


def test_raises_wants_that_error_and_no_other() -> None:
    assert _raises(ValueError, int, "x")
    assert not _raises(KeyError, int, "x")
    assert not _raises(ValueError, int, "1")


# sources and examples ----------------------------------------------------------------------


def test_holes_are_filled_and_unknown_ones_refused() -> None:
    assert fill("<<a>> < <<b>>", {"a": "1", "b": "2"}) == "1 < 2"
    with pytest.raises(KeyError):
        fill("<<c>>", {"a": "1"})


@pytest.mark.parametrize(
    ("style", "value", "error"),
    [
        ("doctest", ">>> f(1, 'a')\n2", ">>> f(0)\nTraceback (most recent call last):\n    ...\n"),
        ("doctest-words", ">>> f(1, 'a')\n2", ">>> f(0)\nraises KeyError"),
        ("assert", "assert f(1, 'a') == 2", "# f(0) raises KeyError"),
        ("table", "| `f(1, 'a')` | `2` |", "| `f(0)` | raises `KeyError` |"),
        ("arrow", "- `f(1, 'a')` -> `2`", "- `f(0)` raises `KeyError`"),
    ],
)
def test_examples_are_written_in_five_styles(style: str, value: str, error: str) -> None:
    assert example(style, "f", (1, "a"), Result(value=2)) == value
    assert example(style, "f", (0,), Result(error="KeyError")).startswith(error)


def test_styles_avoid_what_they_cannot_hold() -> None:
    assert [style_for(i, ["x"]) for i in range(6)] == [
        "doctest",
        "assert",
        "table",
        "arrow",
        "doctest-words",
        "doctest",
    ]
    assert style_for(2, ["a|b"]) == "arrow" and style_for(2, ["`"]) == "assert"
    assert style_for(3, ["`"]) == "assert" and style_for(3, ["a|b"]) == "arrow"


def test_a_document_has_parts_of_fourteen_in_order() -> None:
    text = document("arrow", "f", [f"- line {i}" for i in range(15)])
    assert text.startswith("# Worked examples for `f`\n\n## Part 1\n\n- line 0\n- line 1\n")
    assert text.endswith("- line 13\n\n## Part 2\n\n- line 14\n")
    assert block("table", "f", ["| a | b |"]) == "| call | result |\n| --- | --- |\n| a | b |"
    assert block("assert", "f", ["x"]) == "```python\nx\n```"
    assert block("doctest", "f", ["x"]) == "```pycon\n>>> from solution import f\nx\n```"


def chooser(seed: int, **changes: Any) -> ExampleChooser:
    fields: dict[str, Any] = {
        "checked": 40,
        "initial": frozenset(range(10)),
        "invalid": tuple(frozenset(range(k, 100, 9)) for k in range(5)),
        "deciding": (),
        "errors": frozenset(),
    }
    lines = [f"- example number {i:03} of them" for i in range(100)]
    return ExampleChooser(lines, Exposure(**{**fields, **changes}), random.Random(seed))


@pytest.mark.parametrize("seed", range(12))
def test_placement_decides_where_the_initial_state_is_contradicted(seed: int) -> None:
    none = chooser(seed).choose("none")
    assert not {*none.instruction, *none.document} & set(range(10))
    middle = chooser(seed).choose("middle")
    places = [i for i, k in enumerate(middle.document) if k < 10]
    assert places and not set(middle.instruction) & set(range(10))
    assert min(places) / len(middle.document) > 0.3 and max(places) / len(middle.document) < 0.7
    anywhere = chooser(seed).choose("open")
    assert set(anywhere.document) & set(range(10))
    for shown in (none, middle, anywhere):
        everything = [*shown.instruction, *shown.document]
        assert len(everything) == len(set(everything))
        assert len(shown.instruction) in (2, 3) and 20 <= len(shown.document) <= 60


@pytest.mark.parametrize("seed", range(6))
def test_half_of_the_deciding_checked_calls_are_held_back(seed: int) -> None:
    deciding = frozenset(range(20, 40))
    picker = chooser(seed, deciding=(deciding,), invalid=())
    assert len(set(picker._allowed()) & deciding) == 10


def test_errors_are_a_third_of_the_silent_examples_at_most() -> None:
    shown = chooser(3, errors=frozenset(range(30, 100)), invalid=()).choose("none")
    everything = [*shown.instruction, *shown.document]
    assert sum(i >= 30 for i in everything) <= len(everything) / 2
    assert all(i < 30 for i in shown.instruction)
