"""Collected panels become tasks and hidden panels, and every record left out has a reason."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rsi.prism.build.from_panels import ConversionSettings, confirm, convert, plain_id, split_of
from rsi.prism.build.funnel import Dropped, Stage, funnel_of
from rsi.prism.build.labels import Label

HEADER = "import math\n"


def record(**changes: Any) -> dict[str, Any]:
    """A full record: more programs than the panel takes, chosen by index."""
    values: dict[str, Any] = {
        "task_id": "mbpp/13",
        "source": "mbpp",
        "language": "python",
        "licence": "unused",
        "instruction": "\nDouble it.\n",
        "entry_point": "double",
        "module_file": "solution.py",
        "context_header": HEADER,
        "check_prelude": "def _eq(a, b):\n    return a == b\n",
        "initial_stub": "def double(x):\n    raise NotImplementedError\n",
        "initial_buggy": "bad5",
        "gold": "gold",
        "gold_source": "dataset",
        "correct": [f"good{i}" for i in range(6)],
        "correct_solvers": [[f"s{i}"] for i in range(6)],
        "incorrect": [f"bad{i}" for i in range(7)],
        "incorrect_solvers": [["a", "b", "c", "d", "e"]] * 7,
        "incorrect_failed_checks": [[0], [1], [0, 2], [1], [2], [1, 2], [0]],
        "checks": [
            {"id": 0, "kind": "assert", "check": "assert _eq(double(math.pi), 2 * math.pi)"},
            {"id": 1, "kind": "assert", "check": "assert all(double(x) == 2 for x in [1])"},
            {"id": 2, "kind": "assert", "check": "assert double(Pair(1).n) == 2"},
        ],
        "panel": {
            "full": True,
            "verified": True,
            "correct_idx": [5, 0, 2, 3],
            "incorrect_idx": [6, 0, 1, 2, 3],
            "diverse": True,
        },
    }
    values["panel"] = {**values["panel"], **changes.pop("panel", {})}
    return {**values, **changes}


def one(settings: ConversionSettings | None = None, **changes: Any) -> Any:
    """The item made of one record."""
    kept, stage = convert([record(**changes)], settings or ConversionSettings())
    assert stage.kept == 1, stage.drops
    return kept[0]


def drop_of(settings: ConversionSettings | None = None, **changes: Any) -> Dropped:
    """The drop made of one record."""
    kept, stage = convert([record(**changes)], settings or ConversionSettings())
    assert kept == [] and stage.kept == 0
    return stage.drops[0]


def test_a_full_record_becomes_a_task_with_one_four_and_five() -> None:
    task, panel = one()
    assert (task.task_id, task.source, task.family) == ("mbpp-13", "mbpp", "mbpp-13")
    assert [i.implementation_id for i in panel.implementations] == [
        *("b", "g", "v1", "v2", "v3", "v4", "i1", "i2", "i3", "i4", "i5"),
    ]
    texts = {i.implementation_id: i.program.text("solution.py") for i in panel.implementations}
    assert texts["b"] == HEADER + "bad5"
    assert texts["g"] == HEADER + "gold"
    assert [texts[f"v{i}"] for i in range(1, 5)] == [HEADER + f"good{i}" for i in (5, 0, 2, 3)]
    assert [texts[f"i{i}"] for i in range(1, 6)] == [HEADER + f"bad{i}" for i in (6, 0, 1, 2, 3)]
    assert list(task.program.files) == ["solution.py"]
    assert task.program == panel.implementations[0].program


def test_labels_and_origins_come_with_the_programs() -> None:
    _, panel = one()
    by_id = {i.implementation_id: i for i in panel.implementations}
    assert by_id["b"].failed_checks == ("c1", "c2")
    assert by_id["i4"].failed_checks == ("c0", "c2")
    assert by_id["v1"].failed_checks == ()
    assert by_id["v1"].origin == "s5"
    assert by_id["i1"].origin == "a, b, c and 2 more"
    assert by_id["g"].origin == "dataset"


def test_without_a_buggy_program_the_stub_is_the_initial_state_and_fails_everything() -> None:
    task, panel = one(initial_buggy=None)
    assert task.program.text("solution.py") == HEADER + record()["initial_stub"]
    assert panel.implementations[0].failed_checks == ("c0", "c1", "c2")


def test_the_instruction_names_module_and_function() -> None:
    task, _ = one()
    assert task.instruction == (
        "Double it.\n\nThe program is the module `solution.py`; "
        "what is asked for is its `double`.\n"
    )


def test_checks_import_from_the_program_only_the_names_they_use() -> None:
    _, panel = one()
    assert panel.prelude == (
        "import math\nfrom solution import Pair, double\ndef _eq(a, b):\n    return a == b\n"
    )
    assert [c.check_id for c in panel.checks] == ["c0", "c1", "c2"]
    assert panel.checks[0].code == record()["checks"][0]["check"]


def test_a_function_named_like_a_builtin_is_imported_all_the_same() -> None:
    checks = [{"id": i, "check": "assert sum(1, 2) == 3"} for i in range(3)]
    _, panel = one(entry_point="sum", checks=checks, context_header=None)
    assert panel.prelude.startswith("from solution import sum\n")


@pytest.mark.parametrize("lacking", [{"full": False}, {"verified": False}])
def test_other_records_become_training_tasks_with_the_signal_panel(lacking: Any) -> None:
    for number in range(20):
        task, panel = one(task_id=f"mbpp/{number}", panel=lacking)
        assert task.split == "train"
        assert [i.implementation_id for i in panel.implementations] == ["b", "g"]
    reason = drop_of(ConversionSettings(signal="drop"), panel=lacking).reason
    assert reason == ("no full panel" if "full" in lacking else "panel not verified")


@pytest.mark.parametrize(
    ("changes", "reason", "detail"),
    [
        ({"language": "rust"}, "language rust has no verifier", ""),
        ({"checks": []}, "no checks", ""),
        ({"panel": {"correct_idx": [0]}}, "panel has 1 valid and 5 invalid programs, not 4", ""),
        ({"panel": {"incorrect_idx": [0]}}, "panel has 4 valid and 1 invalid programs, not 4", ""),
        ({"initial_buggy": "else"}, "initial state without a label", ""),
        ({"gold": None}, "malformed record", "gold: "),
        ({"instruction": ""}, "malformed record", "instruction: "),
        ({"panel": {"correct_idx": [0, 1, 2, 9]}}, "malformed record", "tuple index"),
        ({"checks": [{"id": 0, "check": "assert ("}]}, "malformed record", "'(' was never"),
        ({"module_file": "../solution.py"}, "malformed record", "'../solution.py': not a"),
        ({"incorrect_failed_checks": [[]] * 7}, "malformed record", "1 validation error"),
    ],
)
def test_what_cannot_be_converted_is_dropped_with_a_reason(
    changes: dict[str, Any], reason: str, detail: str
) -> None:
    drop = drop_of(**changes)
    assert drop.task_id == "mbpp/13"
    assert drop.reason.startswith(reason)
    assert drop.detail.startswith(detail)
    assert "\n" not in drop.detail


def test_a_second_record_of_a_task_is_dropped() -> None:
    kept, stage = convert([record(), record(gold="other")], ConversionSettings())
    assert len(kept) == 1
    assert kept[0][1].implementations[1].program.text("solution.py") == HEADER + "gold"
    assert stage.drops == (Dropped(task_id="mbpp/13", reason="duplicate task id"),)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("humaneval/HumanEval/0", "humaneval-0"),
        ("mbpp/13", "mbpp-13"),
        ("Exercism:two fer", "exercism-two-fer"),
        ("x" * 200, "x" * 96),
    ],
)
def test_task_ids_are_spelled_our_way(theirs: str, ours: str) -> None:
    assert plain_id(theirs) == ours


def test_splits_have_their_shares_and_follow_the_seed() -> None:
    counts = Counter(split_of(42, f"t-{i}") for i in range(4_000))
    shares = {name: count / 4_000 for name, count in counts.items()}
    wanted = {"train": 0.40, "selection": 0.15, "release": 0.15, "test": 0.30}
    assert shares == pytest.approx(wanted, abs=0.03)
    first = [split_of(42, f"t-{i}") for i in range(50)]
    assert first == [split_of(42, f"t-{i}") for i in range(50)]
    assert first != [split_of(43, f"t-{i}") for i in range(50)]
    assert one(ConversionSettings(seed=3))[0].split == split_of(3, "mbpp-13")


def labels(**changed: Label) -> dict[str, Label]:
    """What the verifier says when it agrees with the record, apart from some changes."""
    _, panel = one()
    agreed = {
        i.implementation_id: Label(
            verdict="invalid" if i.failed_checks else "valid", failed_checks=i.failed_checks
        )
        for i in panel.implementations
    }
    return {**agreed, **changed}


VALID = Label(verdict="valid")
FAILS = Label(verdict="invalid", failed_checks=("c1",))


def test_confirmed_items_stay_with_the_failed_checks_that_were_measured() -> None:
    kept, stage = confirm([(one(), labels(i1=FAILS))])
    assert stage == Stage(name="verify", kept=1)
    assert kept[0][0] == one()[0]
    assert kept[0][1].implementations[6].failed_checks == ("c1",)
    assert kept[0][1].implementations[7].failed_checks == ("c0",)


@pytest.mark.parametrize(
    ("changed", "reason", "detail"),
    [
        ({"b": VALID}, "initial state passes all checks", ""),
        ({"g": FAILS}, "reference fails", "c1"),
        ({"g": FAILS, "b": VALID}, "reference fails", "c1"),
        ({"v2": FAILS}, "label contradicted", "v2 is labelled valid but fails 1 checks: c1"),
        ({"i1": FAILS, "i2": VALID}, "label contradicted", "i2 is labelled invalid but passes"),
        (
            {"v2": Label(verdict="flaky", reason="runs disagree on c1")},
            "flaky",
            "mbpp-13: v2: runs",
        ),
        ({"v2": Label(verdict="unlabelled", reason="lost")}, "no label", "mbpp-13: v2: lost"),
    ],
)
def test_items_the_verifier_does_not_confirm_are_dropped(
    changed: dict[str, Label], reason: str, detail: str
) -> None:
    kept, stage = confirm([(one(), labels(**changed))])
    assert kept == []
    assert stage.drops[0].task_id == "mbpp-13"
    assert stage.drops[0].reason == reason
    assert stage.drops[0].detail.startswith(detail)


def test_a_funnel_counts_each_stage_and_lists_every_drop() -> None:
    drops = tuple(
        Dropped(task_id=str(i), reason=r, detail="x") for i, r in enumerate(["a", "b", "b"])
    )
    funnel = funnel_of([Stage(name="convert", kept=4, drops=drops), Stage(name="verify", kept=4)])
    assert funnel["stages"] == [
        {"name": "convert", "entered": 7, "kept": 4, "dropped": {"b": 2, "a": 1}},
        {"name": "verify", "entered": 4, "kept": 4, "dropped": {}},
    ]
    assert list(funnel["stages"][0]["dropped"]) == ["b", "a"]
    assert funnel["drops"][0] == {
        "stage": "convert",
        "task_id": "0",
        "reason": "a",
        "detail": "x",
    }
    assert len(funnel["drops"]) == 3
