"""Which calls are tried on programs, and what the scripts in the sandbox make of them."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rsi.helix
from rsi.helix.calls import ProgramCall, boundaries, calls_to_try, documents, public_functions
from rsi.prism.tree import Tree

SCRIPTS = Path(rsi.helix.__file__).parent / "sandboxed"
PROGRAM = Tree.of(
    {
        "solution.py": "def f(x, y=1):\n    return x\ndef _hidden(): pass\n\ndef g(): pass\n",
        "src/pkg/__init__.py": "def h(a):\n    return a\n",
        "test_it.py": "def test_f(): pass\n",
        "broken.py": "def oops(:\n",
        "not-a-name.py": "def nope(): pass\n",
        "docs/examples.md": "`f(7)` -> `7`\n",
        "data.json": "{}",
    }
)
F = {"f": "solution"}


def suite(text: str) -> Tree:
    return Tree.of({"test_x.py": text})


def shown(calls: list[ProgramCall]) -> list[str]:
    return [call.shown for call in calls]


def test_public_functions_are_those_all_programs_share() -> None:
    assert public_functions([PROGRAM]) == {"h": "pkg", "f": "solution", "g": "solution"}
    other = Tree.of({"solution.py": "def f(x): pass\n", "pkg.py": "def g(): pass\n"})
    assert public_functions([PROGRAM, other]) == F
    assert public_functions([]) == {}


def test_documents_are_the_texts_a_reader_would_open() -> None:
    assert documents(PROGRAM) == ["`f(7)` -> `7`\n"]


def test_calls_are_found_in_suites_and_in_the_requirement() -> None:
    suites = [
        suite("assert solution.f(2, y=[3]) == 4\nf(x)\ng(1)\nf(*a)\nf(**k)\nf('a)')\nf(2, y=[3])")
    ]
    texts = ["`f((1, 2))` gives 1, f(unknown) not; elf(9); f(5"]
    found = calls_to_try(F, suites, texts, 100, 0)
    assert shown(found)[:3] == ["f('a)')", "f(2, y=[3])", "f((1, 2))"]
    assert found[1] == ProgramCall("solution", "f", "((2,), {'y': [3]})")
    assert not [call for call in shown(found) if "9" in call or "unknown" in call]


def test_nothing_is_tried_without_functions_or_calls() -> None:
    assert calls_to_try({}, [suite("f(1)")], ["f(2)"], 10, 0) == []
    assert calls_to_try(F, [suite("x = 1")], ["none"], 10, 0) == []


@pytest.mark.parametrize(
    "text", ["def oops(:", "(" * 5_000, "f(" * 300 + "x" + ")" * 300, "\0", "f('\ud7ff"]
)
def test_hostile_sources_are_passed_over(text: str) -> None:
    assert calls_to_try(F, [suite(text)], [text], 10, 0) == []


@pytest.mark.parametrize("most", [1, 2, 7, 30])
def test_the_number_of_calls_is_bounded_and_the_draw_is_seeded(most: int) -> None:
    suites = [suite("\n".join(f"f({n}, 'ab')" for n in range(10, 16)))]
    found = calls_to_try(F, suites, [], most, 3)
    assert len(found) == most
    assert len(set(found)) == most
    assert found == calls_to_try(F, suites, [], most, 3)
    stated = [call for call in shown(found) if call in [f"f({n}, 'ab')" for n in range(10, 16)]]
    assert len(stated) == min(6, -(-most // 3))
    if most == 30:
        assert found != calls_to_try(F, suites, [], most, 4)


def test_variants_move_one_argument_to_a_boundary_or_to_another_calls_value() -> None:
    found = shown(calls_to_try(F, [suite("f(5, 'ab')\nf(9, 'c')")], [], 200, 0))
    assert {"f(0, 'ab')", "f(4, 'ab')", "f(-5, 'ab')", "f(5, '')", "f(9, 'ab')"} <= set(found)
    assert "f(0, '')" not in found


@pytest.mark.parametrize(
    ("value", "some"),
    [
        (True, [False]),
        (3, [0, -3, 4, 2]),
        (1.5, [0.0, -1.5]),
        ("ab", ["", "a", "abab", "AB", "ba", " ab"]),
        ([1, 2], [[], [1], [2, 1], [1, 2, 1, 2]]),
        ((1, 2), [(), (1,), (2, 1)]),
        ({"a": 1, "b": 2}, [{}, {"a": 1}]),
        (None, []),
    ],
)
def test_boundaries_follow_the_type(value: object, some: list[object]) -> None:
    found = boundaries(value)
    assert all(item in found for item in some)
    assert all(type(item) is type(value) for item in found)


def drive(tmp_path: Path, program: str, *calls: ProgramCall) -> list[dict[str, object]]:
    (tmp_path / "solution.py").write_text(program)
    listed = [vars(call) for call in calls]
    (tmp_path / "calls.json").write_text(json.dumps(listed))
    done = subprocess.run(
        [sys.executable, "-I", SCRIPTS / "drive.py", "calls.json"],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == b""
    return [json.loads(line) for line in done.stdout.splitlines()]


def on(name: str, *args: object) -> ProgramCall:
    return ProgramCall("solution", name, repr((args, {})))


def test_the_driver_prints_what_each_call_did_and_nothing_of_the_program(tmp_path: Path) -> None:
    program = """
import sys, os
print("noise"); os.write(1, b"raw noise")
def f(x): print("more"); return {"b": x, "a": [x, (None, True)]}
def bad(x): raise KeyError(x)
def leaves(x): sys.exit(0)
def odd(x): return object()
def big(x): return "z" * 400
def nan(x): return float("nan")
def loops(x):
    while True: pass
"""
    names = ["f", "bad", "leaves", "odd", "big", "nan", "loops", "missing", "f"]
    assert drive(tmp_path, program, *(on(name, 1) for name in names)) == [
        {"call": 0, "value": "{'a': [1, (None, True)], 'b': 1}"},
        {"call": 1, "raises": "KeyError"},
        {"call": 2, "raises": "SystemExit"},
        {"call": 3, "opaque": "object"},
        {"call": 4, "opaque": "str"},
        {"call": 5, "opaque": "float"},
        {"call": 6, "raises": "TooSlow"},
        {"call": 7, "raises": "AttributeError"},
        {"call": 8, "value": "{'a': [1, (None, True)], 'b': 1}"},
    ]


def test_a_program_that_cannot_be_imported_raises_in_every_call(tmp_path: Path) -> None:
    assert drive(tmp_path, "import nowhere", on("f", 1))[0]["raises"] == "ModuleNotFoundError"


@pytest.mark.parametrize(
    ("program", "case", "accepted"),
    [
        ("def f(x): return x * 2", {"value": "4"}, True),
        ("def f(x): return x", {"value": "4"}, False),
        ("def f(x): raise ValueError", {"value": "4"}, False),
        ("def f(x): raise ValueError", {"raises": "ValueError"}, True),
        ("class Own(ValueError): pass\ndef f(x): raise Own", {"raises": "ValueError"}, True),
        ("def f(x): raise TypeError", {"raises": "ValueError"}, False),
        ("def f(x): return None", {"raises": "ValueError"}, False),
        ("def f(x):\n    while True: pass", {"value": "4"}, False),
    ],
)
def test_the_check_accepts_exactly_what_the_case_says(
    tmp_path: Path, program: str, case: dict[str, str], accepted: bool
) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "solution.py").write_text(program)
    (tmp_path / "check.py").write_text((SCRIPTS / "check.py").read_text())
    call = on("f", 2)
    written = [{**vars(call), "call": call.shown, **case}]
    (tmp_path / "cases.json").write_text(json.dumps(written))
    done = subprocess.run(
        [sys.executable, "-I", "check.py"],
        cwd=tmp_path,
        env={**os.environ, "TP_PROGRAM_ROOT": str(tmp_path / "program")},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode == 0) is accepted
    if not accepted and done.returncode == 1:
        assert b"AssertionError: f(2)" in done.stderr


def test_a_call_is_shown_as_it_would_be_written() -> None:
    call = ProgramCall("m", "f", repr(((1, "a"), {"key": [2]})))
    assert call.shown == "f(1, 'a', key=[2])"
    assert ast.unparse(ast.parse(call.shown)) == call.shown
