"""Benchmark folders are written whole, read back equal, and every fault is one line."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from rsi.errors import BenchmarkError
from rsi.prism.build.labels import VerifierRun
from rsi.prism.panel import Check, Implementation, Panel
from rsi.prism.task import Limits, Task
from rsi.prism.tree import File, Tree
from workers.benchmark import BenchmarkSettings, open_benchmark
from workers.dataset import item_digest, open_dataset
from workers.dataset_write import About, write_dataset

BAD = "def double(x):\n    return x + 2\n"
GOOD = "def double(x):\n    return 2 * x\n"
DOC = Path(__file__).resolve().parents[2] / "docs" / "task-format.md"


def item(task_id: str = "one", split: str = "train", family: str = "") -> tuple[Task, Panel]:
    """A task with a panel of b, g, v1 and i1, two checks, and bytes that text would not keep."""
    extra = {
        "docs/notes.bin": File(content=b"\xff\r\n\x00"),
        "run": File(content=b"x", executable=True),
    }
    start = Tree(files={**Tree.of({"solution.py": BAD}).files, **extra})

    def made(name: str, kind: str, program: Tree, *failed: str) -> Implementation:
        return Implementation(
            implementation_id=name,
            kind=kind,
            program=program,
            failed_checks=failed,
            origin=f"by {name}",
        )

    task = Task(
        task_id=task_id,
        source="made",
        family=family or task_id,
        split=split,
        instruction="Double it.\r\n\tÄ: `double(2)` is 4",
        program=start,
        limits=Limits(wall_seconds=3.5),
        image="python:3.11",
    )
    panel = Panel(
        task_id=task_id,
        prelude="from solution import double\n",
        checks=(
            Check(check_id="zero", code="assert double(0) == 0"),
            Check(check_id="three", code="assert double(3) == 6"),
        ),
        implementations=(
            made("b", "initial", start, "zero", "three"),
            made("g", "reference", Tree.of({"solution.py": GOOD})),
            made("v1", "valid", Tree.of({"solution.py": "double = lambda x: x + x\n"})),
            made("i1", "invalid", Tree.of({"solution.py": "double = abs\n"}), "three"),
        ),
    )
    return task, panel


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset of two tasks that a test may damage."""
    out = tmp_path / "set"
    write_dataset(out, [item(), item("two", "test")], "small", About(version="3", seed=7))
    return out


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    """Load JSON or YAML, let a test change it in place, write it back."""
    yaml_file = path.suffix == ".yaml"
    value = yaml.safe_load(path.read_text()) if yaml_file else json.loads(path.read_text())
    change(value)
    path.write_text(yaml.safe_dump(value) if yaml_file else json.dumps(value))


def fault(folder: Path) -> str:
    """The one line with which the strict reading of task `one` or of the index ends."""
    with pytest.raises(BenchmarkError) as caught:
        open_dataset(folder).load_item("one")
    line = str(caught.value)
    assert "\n" not in line
    return line.replace(str(folder), "SET")


def test_what_is_written_is_read_back_equal(folder: Path) -> None:
    dataset = open_dataset(folder)
    assert dataset.task_ids == ("one", "two")
    assert dataset.load_item("one") == item()
    assert dataset.load_item("two") == item("two", "test")
    assert dataset.name == "small"
    assert (dataset.index.version, dataset.index.seed) == ("3", 7)
    assert dataset.index.splits == {"train": 1, "selection": 0, "release": 0, "test": 1}
    assert dataset.split("test") == ("two",)
    assert dataset.broken == ()
    assert list(dataset.faults()) == []


def test_the_public_tree_names_nothing_of_the_panel(folder: Path) -> None:
    public = [p for p in (folder / "tasks" / "one").rglob("*") if p.is_file()]
    assert {p.name for p in public} == {
        "task.yaml",
        "instruction.md",
        "solution.py",
        "notes.bin",
        "run",
    }
    text = b"".join(p.read_bytes() for p in public)
    assert GOOD.encode() not in text
    assert b"panels" not in text


def test_each_half_is_read_by_itself(folder: Path) -> None:
    shutil.rmtree(folder / "panels" / "one")
    (folder / "panels" / "two" / "labels.json").write_text("{")
    dataset = open_dataset(folder)
    assert dataset.load_task("one") == item()[0]
    assert dataset.load_task("two").split == "test"


def test_hand_written_folders_may_leave_out_digests_counts_and_provenance(folder: Path) -> None:
    edit(
        folder / "dataset.json",
        lambda d: [d.pop(k) for k in ("digest", "splits", "seed", "funnel")],
    )
    edit(folder / "dataset.json", lambda d: [e.pop("digest") for e in d["tasks"].values()])
    edit(
        folder / "tasks/one/task.yaml",
        lambda t: [t.pop(k) for k in ("program_digest", "panel_digest", "language", "entry")],
    )
    edit(folder / "panels/one/panel.json", lambda p: p["implementations"][1].pop("program_digest"))
    (folder / "panels/one/provenance.json").unlink()
    task, panel = open_dataset(folder).load_item("one")
    assert task == item()[0]
    assert [i.origin for i in panel.implementations] == ["", "", "", ""]
    assert panel.digest == item()[1].digest


def test_recorded_runs_are_kept_with_the_labels(tmp_path: Path) -> None:
    runs = {"one": {"i1": [VerifierRun(failed=("three",), collected=2)] * 3}}
    write_dataset(tmp_path / "set", [item()], "small", runs=runs)
    dataset = open_dataset(tmp_path / "set")
    assert dataset.load_item("one") == item()
    assert dataset.load_runs("one")["i1"] == tuple(runs["one"]["i1"])
    assert dataset.load_runs("one")["g"] == ()


CHECKS = "panels/one/verifier/checks.json"
LABELS = "panels/one/labels.json"
PANEL = "panels/one/panel.json"
TASK = "tasks/one/task.yaml"


@pytest.mark.parametrize(
    ("file", "change", "line"),
    [
        (
            "dataset.json",
            lambda d: d.update(extra=1),
            "SET/dataset.json: extra: unknown key; known are name",
        ),
        ("dataset.json", lambda d: d.pop("name"), "SET/dataset.json: name: missing"),
        (
            "dataset.json",
            lambda d: d["tasks"]["one"].update(split="dev"),
            "SET/dataset.json: tasks.one.split: Input should be 'train', ",
        ),
        (
            "dataset.json",
            lambda d: d["tasks"]["one"].update(weight=1),
            "SET/dataset.json: tasks.one.weight: unknown key",
        ),
        (
            "dataset.json",
            lambda d: d["tasks"].update({"../x": d["tasks"]["two"]}),
            "SET/dataset.json: tasks: task_id '../x' does not match",
        ),
        (
            "dataset.json",
            lambda d: d["tasks"].update({"Big": d["tasks"]["two"]}),
            "SET/dataset.json: tasks: task_id 'Big' does not match",
        ),
        (
            "dataset.json",
            lambda d: d["tasks"]["two"].update(family="one"),
            "SET/dataset.json: tasks.two.family: 'one' is in split test and, by one, in train",
        ),
        (
            "dataset.json",
            lambda d: d["splits"].update(train=2),
            "SET/dataset.json: splits.train: says 2 tasks, there are 1",
        ),
        (
            "dataset.json",
            lambda d: d.update(digest="0" * 64),
            "SET/dataset.json: digest: does not match",
        ),
        (
            "dataset.json",
            lambda d: d["tasks"]["one"].update(source="other"),
            "SET/dataset.json: digest: does not match",
        ),
        (
            "dataset.json",
            lambda d: d.update(digest="abc"),
            "SET/dataset.json: digest: String should match",
        ),
        (
            TASK,
            lambda t: t.update(colour="red"),
            "SET/tasks/one/task.yaml: colour: unknown key; known are task_id",
        ),
        (
            TASK,
            lambda t: t.update(task_id="two"),
            "SET/tasks/one/task.yaml: task_id: 'two' in the folder of one",
        ),
        (
            TASK,
            lambda t: t.update(program_digest="0" * 64),
            "SET/tasks/one/task.yaml: program_digest: does not match",
        ),
        (
            TASK,
            lambda t: t.update(panel_digest="0" * 64),
            "SET/tasks/one/task.yaml: panel_digest: does not match",
        ),
        (
            TASK,
            lambda t: t["limits"].update(wall_seconds=0),
            "SET/tasks/one/task.yaml: limits.wall_seconds: Input should be greater than 0",
        ),
        (
            PANEL,
            lambda p: p.update(task_id="two"),
            "SET/panels/one/panel.json: task_id: 'two' in the folder of one",
        ),
        (
            PANEL,
            lambda p: p["implementations"].pop(1),
            "SET/panels/one/panel.json: implementations: 0 of kind reference; a panel has",
        ),
        (
            PANEL,
            lambda p: p["implementations"].pop(0),
            "SET/panels/one/panel.json: implementations: 0 of kind initial; a panel has",
        ),
        (
            PANEL,
            lambda p: p["implementations"].append(p["implementations"][2]),
            "SET/panels/one/panel.json: implementations: v1 is listed twice",
        ),
        (
            PANEL,
            lambda p: p["implementations"][2].update(tree="../two/impl/g/tree"),
            "SET/panels/one/panel.json: implementations.v1.tree: '../two/impl/g/tree': not",
        ),
        (
            PANEL,
            lambda p: p["implementations"][2].update(tree=""),
            "SET/panels/one/panel.json: implementations.v1.tree: missing",
        ),
        (
            PANEL,
            lambda p: p["implementations"][2].update(tree="impl/none"),
            "SET/panels/one/impl/none: no such folder",
        ),
        (
            PANEL,
            lambda p: p["implementations"][2].update(program_digest="0" * 64),
            "SET/panels/one/panel.json: implementations.v1.program_digest: does not match",
        ),
        (
            PANEL,
            lambda p: p["implementations"][2].update(implementation_id="a/b"),
            "SET/panels/one/panel.json: implementations.2.implementation_id: 'a/b' does not match",
        ),
        (
            PANEL,
            lambda p: p["implementations"][2].update(kind="good"),
            "SET/panels/one/panel.json: implementations.2.kind: Input should be 'initial'",
        ),
        (
            LABELS,
            lambda d: d["labels"]["v1"].update(failed_checks=["zero"]),
            "SET/panels/one/labels.json: labels.v1: kind is valid but 1 checks failed: zero",
        ),
        (
            LABELS,
            lambda d: d["labels"]["g"].update(failed_checks=["zero"]),
            "SET/panels/one/labels.json: labels.g: kind is reference but 1 checks failed: zero",
        ),
        (
            LABELS,
            lambda d: d["labels"]["i1"].update(failed_checks=[]),
            "SET/panels/one/labels.json: labels.i1: kind is invalid but no check failed",
        ),
        (
            LABELS,
            lambda d: d["labels"]["b"].update(failed_checks=[]),
            "SET/panels/one/labels.json: labels.b: kind is initial but no check failed",
        ),
        (
            LABELS,
            lambda d: d["labels"]["i1"].update(failed_checks=["four"]),
            "SET/panels/one/labels.json: labels.i1: failed_checks: 'four' is no check",
        ),
        (LABELS, lambda d: d["labels"].pop("i1"), "SET/panels/one/labels.json: labels.i1: missing"),
        (
            LABELS,
            lambda d: d["labels"].update(v9={}),
            "SET/panels/one/labels.json: labels.v9: not an implementation",
        ),
        (
            LABELS,
            lambda d: d["labels"]["i1"].update(runs=[{"failed": ["zero"], "collected": 2}]),
            "SET/panels/one/labels.json: labels.i1: failed_checks: do not follow from",
        ),
        (
            LABELS,
            lambda d: d["labels"]["g"].update(runs=[{"collected": 1}]),
            "SET/panels/one/labels.json: labels.g: runs: give no label: 1 of 2 checks reported",
        ),
        (
            LABELS,
            lambda d: d["labels"]["g"].update(runs=[{"collected": 2}, {"error": "lost"}]),
            "SET/panels/one/labels.json: labels.g: runs: give no label: lost",
        ),
        (
            CHECKS,
            lambda c: c["checks"].append(c["checks"][0]),
            "SET/panels/one/verifier/checks.json: checks: check ids are not unique",
        ),
        (
            CHECKS,
            lambda c: c["checks"][0].update(code="pass"),
            "SET/dataset.json: tasks.one.digest: does not match",
        ),
        (
            CHECKS,
            lambda c: c["checks"][0].pop("code"),
            "SET/panels/one/verifier/checks.json: checks.0.code: missing",
        ),
    ],
)
def test_a_bad_value_is_one_line_with_file_and_key(
    folder: Path, file: str, change: Callable[[Any], Any], line: str
) -> None:
    edit(folder / file, change)
    assert fault(folder).startswith(line)


def test_a_misspelled_key_is_named_before_the_missing_one(folder: Path) -> None:
    edit(folder / "dataset.json", lambda d: d.update(nane=d.pop("name")))
    assert fault(folder).startswith("SET/dataset.json: nane: unknown key; known are name, ")


@pytest.mark.parametrize(
    "file",
    [
        "dataset.json",
        "tasks/one/task.yaml",
        "tasks/one/instruction.md",
        "panels/one/panel.json",
        "panels/one/labels.json",
        "panels/one/verifier/checks.json",
    ],
)
def test_a_missing_file_is_named(folder: Path, file: str) -> None:
    (folder / file).unlink()
    assert fault(folder) == f"SET/{file}: missing"


@pytest.mark.parametrize("file", ["dataset.json", "panels/one/panel.json", "tasks/one/task.yaml"])
@pytest.mark.parametrize(
    ("content", "line"),
    [(b"{'a: [", "not"), (b"\xff", "not UTF-8 at byte 0"), (b"[1]", "holds list, not an object")],
)
def test_a_file_in_another_form_is_named(
    folder: Path, file: str, content: bytes, line: str
) -> None:
    (folder / file).write_bytes(content)
    assert fault(folder).startswith(f"SET/{file}: {line}")


def test_missing_folders_and_empty_ones_are_named(folder: Path) -> None:
    tree = folder / "panels/one/impl/g/tree"
    (tree / "solution.py").unlink()
    assert fault(folder) == "SET/panels/one/impl/g/tree: holds no files"
    tree.rmdir()
    assert fault(folder) == "SET/panels/one/impl/g/tree: no such folder"
    shutil.rmtree(folder / "tasks/one/environment")
    assert fault(folder) == "SET/tasks/one/environment/workspace: no such folder"


def test_an_empty_instruction_is_refused(folder: Path) -> None:
    (folder / "tasks/one/instruction.md").write_text(" \n")
    assert fault(folder) == "SET/tasks/one/instruction.md: is empty"


@pytest.mark.parametrize(
    "place",
    [
        "dataset.json",
        "tasks/one",
        "tasks/one/instruction.md",
        "tasks/one/environment",
        "tasks/one/environment/workspace/solution.py",
        "panels/one/impl/g/tree",
        "panels/one/impl/g/tree/solution.py",
        "panels/one/labels.json",
    ],
)
def test_links_are_refused_wherever_they_are(folder: Path, place: str) -> None:
    path = folder / place
    real = folder.parent / "elsewhere"
    path.rename(real)
    path.symlink_to(real)
    assert "link" in fault(folder)


def test_a_fifo_does_not_hang_the_reader(folder: Path) -> None:
    path = folder / "tasks/one/instruction.md"
    path.unlink()
    os.mkfifo(path)
    assert fault(folder) == "SET/tasks/one/instruction.md: not a regular file"


def test_a_place_that_is_no_dataset_is_named(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"none: not a folder$"):
        open_dataset(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(BenchmarkError, match=r"file: not a folder$"):
        open_dataset(tmp_path / "file")
    with pytest.raises(BenchmarkError, match=r"dataset.json: missing$"):
        open_dataset(tmp_path)


def test_an_unknown_task_is_named(folder: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"dataset.json: tasks.three: no such task$"):
        open_dataset(folder).load_task("three")


def test_broken_tasks_are_left_out_with_one_line_each(folder: Path) -> None:
    (folder / "panels/one/labels.json").unlink()
    dataset = open_dataset(folder, skip_broken=True)
    assert dataset.task_ids == ("two",)
    assert dataset.broken == (f"{folder}/panels/one/labels.json: missing",)
    assert open_dataset(folder).task_ids == ("one", "two")
    benchmark = open_benchmark(BenchmarkSettings(name="folder", path=str(folder)))
    assert list(benchmark.tasks) == ["two"]
    assert benchmark.broken == dataset.broken


def test_a_bad_index_is_an_error_also_when_broken_tasks_are_skipped(folder: Path) -> None:
    edit(folder / "dataset.json", lambda d: d["tasks"]["two"].update(family="one"))
    with pytest.raises(BenchmarkError, match="a family belongs to one split"):
        open_dataset(folder, skip_broken=True)


def test_folders_that_the_index_does_not_name_are_faults_and_not_broken_tasks(folder: Path) -> None:
    shutil.copytree(folder / "tasks/two", folder / "tasks/three")
    (folder / "panels/four").mkdir()
    assert list(open_dataset(folder).faults()) == [
        ("three", f"{folder}/tasks/three: not named in dataset.json"),
        ("four", f"{folder}/panels/four: not named in dataset.json"),
    ]
    assert open_dataset(folder, skip_broken=True).broken == ()


def test_a_dataset_is_replaced_whole(folder: Path) -> None:
    write_dataset(folder, [item("new")], "second")
    assert open_dataset(folder).task_ids == ("new",)
    assert os.listdir(folder / "tasks") == ["new"]
    assert os.listdir(folder.parent) == [folder.name]


def test_other_folders_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BenchmarkError, match="not empty and not a dataset"):
        write_dataset(tmp_path, [item()], "small")
    (tmp_path / "dataset.json").write_text("{}")
    with pytest.raises(BenchmarkError, match="not empty and not a dataset"):
        write_dataset(tmp_path, [item()], "small")
    with pytest.raises(BenchmarkError, match="exists and is not a folder"):
        write_dataset(tmp_path / "notes.txt", [item()], "small")
    assert sorted(os.listdir(tmp_path)) == ["dataset.json", "notes.txt"]


@pytest.mark.parametrize(
    ("items", "line"),
    [
        ([item(), item()], "one: given twice"),
        ([item(), item("two", "test", family="one")], "a family belongs to one split"),
        ([(item()[0], item("two")[1])], "one: comes with the panel of two"),
        ([(item()[0].updated(program=Tree.of({"a": "b"})), item()[1])], "is not the program that"),
    ],
)
def test_items_that_make_no_dataset_leave_the_place_untouched(
    tmp_path: Path, items: list[tuple[Task, Panel]], line: str
) -> None:
    write_dataset(tmp_path / "set", [item("old")], "old")
    with pytest.raises(BenchmarkError, match=re.escape(line)):
        write_dataset(tmp_path / "set", items, "new")
    assert open_dataset(tmp_path / "set").load_item("old") == item("old")
    assert os.listdir(tmp_path) == ["set"]


def test_an_interrupted_write_leaves_nothing_behind(tmp_path: Path) -> None:
    def cut() -> Any:
        yield item()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_dataset(tmp_path / "set", cut(), "small")
    assert os.listdir(tmp_path) == []


def test_the_item_digest_covers_instruction_checks_and_labels() -> None:
    task, panel = item()
    changed = [
        (task.updated(instruction="other"), panel),
        (task, panel.updated(prelude="")),
        (task, panel.updated(checks=(*panel.checks, Check(check_id="x", code="pass")))),
        (task.updated(limits=Limits()), panel),
    ]
    digests = {item_digest(*pair) for pair in [(task, panel), *changed]}
    assert len(digests) == 5


def documented(folder: Path) -> Path:
    """Write the files of the documentation's example: a path in code font, then its block."""
    found = re.findall(r"^`([\w./-]+)`\n\n```\w+\n(.*?)^```$", DOC.read_text(), re.M | re.S)
    for path, content in found:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    return folder


def test_the_documented_example_is_a_dataset(tmp_path: Path) -> None:
    dataset = open_dataset(documented(tmp_path))
    assert list(dataset.faults()) == []
    task, panel = dataset.load_item("clamp-1")
    assert task.limits.wall_seconds == 5
    assert [i.kind for i in panel.implementations] == ["initial", "reference", "invalid"]
