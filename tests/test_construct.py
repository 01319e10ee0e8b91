"""`python -m rsi.construct` builds folders or says in one line why not; `check` finds faults."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rsi.construct import (
    BuildArguments,
    CheckArguments,
    build,
    check,
    main,
    parse_arguments,
)
from rsi.errors import BenchmarkError, SettingsError
from rsi.prism.build.from_panels import ConversionSettings, convert
from rsi.prism.build.verify import VerifierLimits, contradictions, verify
from rsi.prism.corpus import load_kata
from workers.dataset import open_dataset
from workers.dataset_files import read_json_lines
from workers.sandbox import open_sandbox

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("RSI_SHARED", ROOT.parent / "shared"))
SHARED_REASON = "the shared data folder is not beside the checkout"
PANELS = [SHARED / "data" / "panels" / f"{name}.jsonl.gz" for name in ("humaneval", "mbpp")]
needs_panels = pytest.mark.skipif(not all(path.exists() for path in PANELS), reason=SHARED_REASON)


def record(number: int, **changes: Any) -> dict[str, Any]:
    """A signal record about doubling, in the form of the collected panels."""
    values = {
        "task_id": f"made/{number}",
        "source": "made",
        "language": "python",
        "instruction": "Double it.",
        "entry_point": "double",
        "module_file": "solution.py",
        "initial_stub": "def double(x):\n    raise NotImplementedError\n",
        "gold": "def double(x):\n    return 2 * x\n",
        "correct": [],
        "incorrect": [],
        "incorrect_failed_checks": [],
        "checks": [{"id": i, "check": f"assert double({i}) == {2 * i}"} for i in range(3)],
        "panel": {"full": False},
    }
    return {**values, **changes}


def panels_file(folder: Path, *records: dict[str, Any], name: str = "p.jsonl.gz") -> Path:
    path = folder / name
    text = "".join(json.dumps(r) + "\n" for r in records).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def built(out: Path, *words: str) -> dict[str, Any]:
    """Build with these arguments and give summary.json."""
    assert build(parse_arguments(BuildArguments, [f"out={out}", "sandbox=process", *words])) == 0
    return json.loads((out / "summary.json").read_text())


def test_panels_become_a_folder_with_summary_and_funnel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = panels_file(tmp_path, record(1), record(2, language="c"), name="a.jsonl")
    second = panels_file(tmp_path, record(3), record(1))
    out = tmp_path / "set"
    summary = built(out, "benchmark=panels", f"path={first},{second}", "name=mine", "seed=5")
    assert summary["tasks"] == 2
    assert summary["splits"] == {"train": 2, "selection": 0, "release": 0, "test": 0}
    assert (summary["implementations"], summary["full_panels"]) == (4, 0)
    assert summary["verified"] is False and summary["isolation"] == ""
    dataset = open_dataset(out)
    assert dataset.task_ids == ("made-1", "made-3")
    assert (dataset.name, dataset.index.seed) == ("mine", 5)
    assert dataset.index.digest == summary["digest"]
    assert dataset.index.funnel["stages"] == summary["stages"]
    funnel = json.loads((out / "funnel.json").read_text())
    assert funnel["stages"][0]["dropped"] == {
        "language c has no verifier": 1,
        "duplicate task id": 1,
    }
    assert [d["task_id"] for d in funnel["drops"]] == ["made/2", "made/1"]
    assert capsys.readouterr().out.splitlines() == [
        "convert: 4 entered, 2 kept, 1 language c has no verifier, 1 duplicate task id",
        f"2 tasks (2 train, 0 selection, 0 release, 0 test) in {out}",
    ]


def test_verification_drops_what_it_does_not_confirm_and_records_its_runs(tmp_path: Path) -> None:
    right = "def double(x):\n    return x + x\n"
    path = panels_file(
        tmp_path, record(1), record(2, initial_stub=right), record(3, gold="double = abs\n")
    )
    out = tmp_path / "set"
    summary = built(out, "benchmark=panels", f"path={path}", "verify=true", "runs=2")
    assert summary["stages"][1]["dropped"] == {
        "initial state passes all checks": 1,
        "reference fails": 1,
    }
    assert (summary["verified"], summary["isolation"]) == (True, "process")
    dataset = open_dataset(out)
    assert dataset.task_ids == ("made-1",)
    runs = dataset.load_runs("made-1")
    assert [(r.failed, r.collected) for r in runs["g"]] == [((), 3), ((), 3)]
    assert [r.failed for r in runs["b"]] == [("c0", "c1", "c2")] * 2
    again = built(tmp_path / "again", "benchmark=folder", f"path={out}")
    assert open_dataset(tmp_path / "again").load_runs("made-1") == runs
    assert again["stages"][0]["kept"] == 1


def test_limit_bounds_the_records_that_are_read(tmp_path: Path) -> None:
    path = panels_file(tmp_path, *map(record, range(5)))
    assert built(tmp_path / "set", "benchmark=panels", f"path={path}", "limit=2")["tasks"] == 2


def test_signal_drop_leaves_nothing_and_writes_nothing(tmp_path: Path) -> None:
    path = panels_file(tmp_path, record(1))
    with pytest.raises(BenchmarkError, match=r"no task is left; 1 no full panel$"):
        built(tmp_path / "set", "benchmark=panels", f"path={path}", "signal=drop")
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["colour=red"], "colour: unknown key; allowed are sandbox, runs, seed, benchmark, out"),
        (["benchmark=kata"], "out: missing; say out=VALUE"),
        (["benchmark=swe", "out=x"], "benchmark: Input should be 'panels', 'kata' or 'folder'"),
        (["benchmark=panels", "out=x"], "benchmark=panels and benchmark=folder need path="),
        (["benchmark=kata", "out=x", "path=y"], "benchmark=panels and benchmark=folder need path="),
        (["benchmark=kata", "out=x", "limit=-1"], "limit: Input should be greater than or equal"),
        (["benchmark=kata", "out=x", "limit=no"], "limit: Input should be a valid integer"),
        (["benchmark=kata", "out=x", "runs=0"], "runs: Input should be greater than or equal to 1"),
        (["benchmark=kata", "out=x", "out=y"], "out: given twice"),
        (["--out", "x"], "'--out': arguments are KEY=VALUE"),
        (["check"], "check: say which folder"),
        (["check", "verify=all"], "check: say which folder"),
        (["check", "x", "folder=y"], "'folder=y': arguments are KEY=VALUE"),
        (["check", "x", "out=y"], "out: unknown key; allowed are sandbox, runs, seed, verify, sam"),
        (["check", "x", "sample=0"], "sample: Input should be greater than or equal to 1"),
    ],
)
def test_a_wrong_argument_is_one_line(
    words: list[str], line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["construct", *words])
    with pytest.raises(SettingsError) as caught:
        main()
    assert str(caught.value).startswith(line)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "p.jsonl: cannot be read: No such file or directory"),
        (b'{"task_id": 1}\n{', "p.jsonl: line 2: not JSON: "),
        (b"[]\n", "p.jsonl: line 1: not an object"),
        (b"\xff\n", "p.jsonl: line 1: not UTF-8"),
    ],
)
def test_a_file_that_is_no_panel_file_is_one_line(
    tmp_path: Path, content: bytes | None, line: str
) -> None:
    if content is not None:
        (tmp_path / "p.jsonl").write_bytes(content)
    with pytest.raises(BenchmarkError) as caught:
        list(read_json_lines(tmp_path / "p.jsonl"))
    assert str(caught.value).startswith(f"{tmp_path}/{line}")


def test_a_damaged_archive_is_one_line(tmp_path: Path) -> None:
    path = panels_file(tmp_path, record(1))
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(BenchmarkError, match=r"p.jsonl.gz: line \d: damaged archive"):
        list(read_json_lines(path))
    path.write_bytes(b"not gzip")
    with pytest.raises(BenchmarkError, match=r"p.jsonl.gz: cannot be read: Not a gzipped file"):
        list(read_json_lines(path))


def test_a_place_that_is_taken_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BenchmarkError, match="not empty and not a dataset"):
        built(tmp_path, "benchmark=panels", "path=nowhere")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "rsi.construct", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_command_exits_with_2_and_one_line_for_a_mistake(tmp_path: Path) -> None:
    done = run("benchmark=kata", f"out={tmp_path / 'x'}", "coler=1")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: coler: unknown key; allowed are sandbox, ")
    assert done.stderr.count("\n") == 1
    assert run("--help").returncode == 0
    assert "benchmark=panels path=FILE" in run("--help").stdout


def checked(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    """The exit code and the lines of a check."""
    arguments = parse_arguments(
        CheckArguments, ["sandbox=process", "runs=1", *words], folder=folder
    )
    capsys.readouterr()
    code = check(arguments)
    return code, capsys.readouterr().out.replace(str(folder), "SET").splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = panels_file(tmp_path, *map(record, range(3)))
    built(tmp_path / "set", "benchmark=panels", f"path={path}")
    return tmp_path / "set"


def test_a_sound_folder_has_no_fault(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(folder, capsys) == (0, ["3 tasks read, 3 verified, 0 faults"])
    assert checked(folder, capsys, "sample=2") == (0, ["3 tasks read, 2 verified, 0 faults"])
    assert checked(folder, capsys, "verify=none") == (0, ["3 tasks read, 0 verified, 0 faults"])
    assert checked(folder, capsys, "verify=all", "sample=1") == (
        0,
        ["3 tasks read, 3 verified, 0 faults"],
    )


def test_every_fault_is_a_line_and_the_exit_code_is_1(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "panels/made-1/labels.json").unlink()
    index = json.loads((folder / "dataset.json").read_text())
    index["digest"] = ""
    index["tasks"]["made-2"]["digest"] = ""
    (folder / "dataset.json").write_text(json.dumps(index))
    checks = folder / "panels/made-2/verifier/checks.json"
    checks.write_text(checks.read_text().replace("double(2) == 4", "double(2) == 5"))
    assert checked(folder, capsys) == (
        1,
        [
            "SET/panels/made-1/labels.json: missing",
            "made-2: g is labelled reference but fails 1 checks: c2",
            "3 tasks read, 2 verified, 2 faults",
        ],
    )


def test_a_folder_without_an_index_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert checked(tmp_path, capsys) == (1, ["SET/dataset.json: missing"])


def test_a_panel_without_checks_cannot_be_verified(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        path = folder / f"panels/made-{number}/verifier/checks.json"
        path.write_text('{"checks": []}')
    index = json.loads((folder / "dataset.json").read_text())
    index["digest"] = ""
    for entry in index["tasks"].values():
        entry["digest"] = ""
    (folder / "dataset.json").write_text(json.dumps(index))
    code, lines = checked(folder, capsys)
    assert code == 1
    assert lines[0].startswith("made-0: the verifier has no checks")
    assert lines[-1] == "3 tasks read, 3 verified, 3 faults"


def test_the_documented_example_passes_its_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs" / "task-format.md").read_text()
    for path, content in re.findall(r"^`([\w./-]+)`\n\n```\w+\n(.*?)^```$", text, re.M | re.S):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    assert checked(tmp_path, capsys) == (0, ["1 tasks read, 1 verified, 0 faults"])


def test_the_kata_written_and_read_back_is_the_same(tmp_path: Path) -> None:
    pairs = load_kata()
    summary = built(tmp_path / "kata", "benchmark=kata")
    dataset = open_dataset(tmp_path / "kata")
    assert summary["tasks"] == len(pairs) > 0
    assert [dataset.load_item(i) for i in dataset.task_ids] == sorted(
        pairs, key=lambda pair: pair[0].task_id
    )


@needs_panels
@pytest.mark.slow
def test_all_collected_panels_convert_and_return_from_disk(tmp_path: Path) -> None:
    summary = built(tmp_path / "set", "benchmark=panels", f"path={PANELS[0]},{PANELS[1]}")
    assert summary["tasks"] == 507
    assert summary["full_panels"] == 324
    assert sum(summary["splits"].values()) == 507
    records = [r for path in PANELS for r in read_json_lines(path)]
    items, stage = convert(records, ConversionSettings())
    assert stage.drops == ()
    full = Counter(task.source for task, panel in items if len(panel.implementations) == 11)
    assert full == {"humaneval": 118, "mbpp": 206}
    assert all(task.split == "train" for task, p in items if len(p.implementations) == 2)
    dataset = open_dataset(tmp_path / "set", skip_broken=True)
    assert dataset.broken == ()
    assert dataset.load_item("humaneval-0") in items


@needs_panels
@pytest.mark.parametrize("path", PANELS, ids=lambda path: path.name)
def test_the_verifier_reproduces_labels_of_collected_panels(path: Path) -> None:
    records = list(read_json_lines(path))
    items, _ = convert(records[:4], ConversionSettings(signal="drop"))
    for _, panel in items[:1]:
        labels = verify(panel, open_sandbox("process"), runs=1, limits=VerifierLimits())
        assert contradictions(panel, labels) == ()
        assert {label.verdict for label in labels.values()} == {"valid", "invalid"}
