from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from workers.builtin_coder.check import Check
from workers.builtin_coder.scripts import search_text
from workers.builtin_coder.search_trial import Program, Trial
from workers.builtin_coder.suite_text import write_suite

CHECKS = tuple(
    Check(f"f({n})", str(wanted))
    for n, wanted in ((0, 1), (-3, 3), (9, 18), (10, 20), (12, 24), (5, 6), (-1, 1))
)
THREE_FAULTS = """def f(n):
    if n <= 0:
        return -n
    if n > 9:
        return n + 2
    return n + 1
"""
GOOD = THREE_FAULTS.replace("<= 0", "< 0").replace("> 9", ">= 9").replace("+ 2", "* 2")
LOOPING = """def f(n):
    while n < 20:
        n += 1
    return 'n'
"""
ORDER = "Compare,Constant,BinOp"


def prepare(root: Path, program: str) -> Path:
    (root / "submission").mkdir(parents=True)
    (root / ".repair").mkdir()
    (root / "solution.py").write_text(program)
    suite = write_suite(CHECKS, {"f": "solution"}, "solution", 20_000)
    (root / "submission" / "test_requirement.py").write_text(suite)
    (root / ".repair" / "search.py").write_text(search_text())
    return root


def search(root: Path, tries: int, calls: str = "", seed: int = 3) -> str:
    done = subprocess.run(
        f"{sys.executable} -BWignore .repair/search.py solution.py {seed} {tries} {ORDER}".split(),
        cwd=root,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        input=calls,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def tried(output: str) -> int:
    return int(output.split("tried: ")[1].split()[0])


def test_small_runs_find_what_one_large_run_finds(tmp_path: Path) -> None:
    large, small = prepare(tmp_path / "l", THREE_FAULTS), prepare(tmp_path / "s", THREE_FAULTS)
    whole = search(large, 100_000)
    assert whole.startswith("REPAIRED solution.py")
    runs, output = 0, ""
    while not output.startswith("REPAIRED"):
        output = search(small, 5)
        runs += 1
        assert runs < 400
    assert output == whole
    assert runs > 3
    assert (small / "solution.py").read_text() == (large / "solution.py").read_text()


def test_a_run_goes_on_from_the_state_of_the_last_and_starts_anew_without(tmp_path: Path) -> None:
    root = prepare(tmp_path / "w", THREE_FAULTS)
    assert [tried(search(root, 5)) for _ in range(3)] == [5, 10, 15]
    (root / ".repair" / "state").unlink()
    assert tried(search(root, 5)) == 5
    assert tried(search(root, 5, seed=4)) == 5
    suite = root / "submission" / "test_requirement.py"
    suite.write_text(suite.read_text() + "# changed\n")
    assert tried(search(root, 5, seed=4)) == 5


def test_a_repair_leaves_no_trace_and_tells_what_calls_give(tmp_path: Path) -> None:
    root = prepare(tmp_path / "w", THREE_FAULTS)
    output = search(root, 100_000, "f(20)\nf('a')\n")
    assert "REPAIRED solution.py passing: " in output
    assert "f(20) => 40 # " in output and "f('a') => TypeError # " in output
    assert not (root / ".repair").exists()


def test_edits_that_loop_use_up_a_run_soon(tmp_path: Path) -> None:
    root = prepare(tmp_path / "w", LOOPING)
    counts = [0]
    for _ in range(12):
        counts.append(tried(search(root, 50)))
    steps = [b - a for a, b in itertools.pairwise(counts)]
    assert max(steps) <= 50
    assert any(step < 20 for step in steps[:-1])


def test_an_edit_is_tried_on_the_cases_that_reach_it() -> None:
    text = b"def f(n):\n    if n < 0:\n        return 1\n    return 2\n\ndef g():\n    return 3\n"
    test: Any = ModuleType("test")
    exec(
        "f = g = None\nCASES = [(lambda: f(-1), 1, '', ''), (lambda: f(1), 1, '', '')]", vars(test)
    )
    test.same = lambda left, right: left == right
    trial = Trial(test, "solution.py")
    trial.imported = ["f"]
    program = Program(text, trial)
    assert program.wrong == [1]

    def at(part: bytes) -> tuple[list[int], list[int]]:
        start = text.index(part)
        return program.touched((start, start + len(part), b"0"))

    assert at(b"n < 0") == ([1], [0])
    assert at(b"return 1") == ([], [0])
    assert at(b"return 2") == ([1], [])
    assert at(b"return 3") == ([], [])
    assert at(b"f(n)") == ([1], [0])
    start = text.index(b"2")
    assert program.judge((start, start + 1, b"1"), [1], []) == 0
    assert program.judge((start, start + 1, b"3"), [1], []) is None


def test_a_program_that_passes_is_told_apart_from_one_that_cannot_be_mended(tmp_path: Path) -> None:
    good = prepare(tmp_path / "g", GOOD)
    assert search(good, 100).startswith("NO REPAIR tried: 0 failing: 0 ")
    hopeless = prepare(tmp_path / "h", "def f(xs):\n    return 'n'\n")
    assert " open: 0" in search(hopeless, 100_000)
    assert not (good / ".repair").exists() and not (hopeless / ".repair").exists()
