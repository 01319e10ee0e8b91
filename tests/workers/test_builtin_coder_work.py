from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from workers.builtin_coder import Answer, estimate_tokens, reply
from workers.builtin_coder.check import Check
from workers.builtin_coder.suite_text import (
    json_length,
    read_failures,
    read_suite,
    write_suite,
)

TOOLS = [{"type": "function", "function": {"name": "run"}}]
GOOD = """def is_leap(year):
    if year < 0:
        raise ValueError("year")
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
"""
REQUIREMENT = """`is_leap(year)` tells whether a year has 366 days.

- `is_leap(2024)` -> `True`
- `is_leap(1900)` returns `False`
- `is_leap(2000)` is `True`
- `is_leap(2023)` -> `False`
- `is_leap(-1)` raises `ValueError`
- `is_leap(0)` -> `True`
"""

SIX_FAULTS = """def f(n):
    if n <= 0:
        return -n
    if n == 100:
        return 0
    if n == 200:
        return 4
    if n > 9:
        return n + 2
    return n + 3
"""
SIX_MENDED = """def f(n):
    if n < 0:
        return -n
    if n == 100:
        return 1
    if n == 200:
        return 3
    if n >= 9:
        return n * 2
    return n + 1
"""
SIX_FAULTS_TEXT = "\n".join(
    f"f({n}) -> {wanted}"
    for n, wanted in (
        (0, 1),
        (-3, 3),
        (9, 18),
        (10, 20),
        (12, 24),
        (5, 6),
        (-1, 1),
        (100, 1),
        (200, 3),
    )
)


def environment(root: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    names = {"TP_SUBMISSION": str(root / "submission"), "TP_PROGRAM_ROOT": str(root)}
    return {"PATH": path, "TP_OUT": "/tmp", **names}


@dataclass
class Workspace:
    """A workspace on disk and the conversation about it, played like an agent would."""

    root: Path
    requirement: str
    style: str = "You are agent-1. You are careful: you check."
    cut: int = 20_000
    messages: list[dict[str, Any]] = field(default_factory=list)
    said: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def start(self, files: dict[str, str]) -> Workspace:
        for path, text in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
        names = "\n".join(f"- `{path}`" for path in files)
        task = f"# Task\n\n## Requirement\n{self.requirement}\n\n## Program\nFiles:\n{names}\n"
        self.messages = [
            {"role": "system", "content": self.style},
            {"role": "user", "content": task},
        ]
        return self

    def play(self, steps: int, seed: int = 1) -> str:
        """Take steps until a submission; gives the last tool."""
        last = ""
        for step in range(steps):
            answer = reply(self.messages, TOOLS, seed + step, 4_096)
            calls = [
                {"id": f"{len(self.messages)}-{i}", "function": {"name": n, "arguments": a}}
                for i, (n, a) in enumerate(answer.calls)
            ]
            self.messages.append({"role": "assistant", "content": "", "tool_calls": calls})
            for call, (name, arguments) in zip(calls, answer.calls, strict=True):
                given = json.loads(arguments)
                self.said.append((name, given))
                result = self.carry_out(name, given)
                if len(result) > self.cut:
                    half = self.cut // 2
                    mark = f"\n[... {len(result) - self.cut} characters left out ...]\n"
                    result = result[:half] + mark + result[-half:]
                self.messages.append(
                    {"role": "tool", "tool_call_id": call["id"], "content": result}
                )
                last = name
            if last == "submit":
                break
        return last

    def carry_out(self, name: str, given: dict[str, Any]) -> str:
        if name == "read_file":
            return (self.root / given["path"]).read_text()
        if name == "write_file":
            (self.root / given["path"]).parent.mkdir(parents=True, exist_ok=True)
            (self.root / given["path"]).write_text(given["content"])
            return "written"
        if name == "run":
            done = self.shell(given["command"])
            return f"exit status {done.returncode}\nstdout:\n{done.stdout}\nstderr:\n{done.stderr}"
        if name == "list_files":
            return "\n".join(f"{p.name} (9 bytes)" for p in self.root.iterdir())
        return ""

    def shell(self, command: str, root: Path | None = None) -> subprocess.CompletedProcess[str]:
        env = {**environment(self.root), "TP_PROGRAM_ROOT": str(root or self.root)}
        return subprocess.run(
            ["sh", "-c", command],
            cwd=root or self.root,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )

    def accepts(self, program: str, tmp: Path) -> bool:
        """Run the suite on another program, in a folder of its own."""
        tmp.mkdir(exist_ok=True)
        (tmp / "solution.py").write_text(program)
        entry = self.root / "submission" / "run_tests.sh"
        return self.shell(f"sh {entry}", tmp).returncode == 0

    def suite(self) -> list[Check]:
        return list(read_suite((self.root / "submission" / "test_requirement.py").read_text()))


def buggy(old: str, new: str) -> dict[str, str]:
    assert old in GOOD
    return {"solution.py": GOOD.replace(old, new, 1)}


def test_it_writes_a_suite_that_tells_the_fault_and_mends_the_program(tmp_path: Path) -> None:
    work = Workspace(tmp_path / "w", REQUIREMENT).start(buggy("% 400 == 0", "% 400 != 0"))
    faulty = (work.root / "solution.py").read_text()
    assert work.play(10) == "submit"
    assert not work.accepts(faulty, tmp_path / "b")
    assert work.accepts(GOOD, tmp_path / "g")
    assert work.accepts((work.root / "solution.py").read_text(), tmp_path / "p")
    assert "year % 4 == 0 and" in (work.root / "solution.py").read_text()
    assert not (work.root / ".repair").exists()
    assert {c.call for c in work.suite() if c.stated} == {
        f"is_leap({n})" for n in (2024, 1900, 2000, 2023, -1, 0)
    }
    assert [name for name, _ in work.said][:3] == ["read_file", "write_file", "write_file"]


def test_six_faults_need_more_steps_than_one_reply(tmp_path: Path) -> None:
    work = Workspace(tmp_path / "w", SIX_FAULTS_TEXT).start({"solution.py": SIX_FAULTS})
    work.play(2)
    assert not work.accepts((work.root / "solution.py").read_text(), tmp_path / "early")
    assert (work.root / ".repair" / "state").exists()
    assert work.play(12) == "submit"
    assert work.accepts((work.root / "solution.py").read_text(), tmp_path / "late")
    assert work.accepts(SIX_MENDED, tmp_path / "g")
    assert not (work.root / ".repair").exists()
    searches = [g["command"] for n, g in work.said if "search.py" in g.get("command", "")]
    assert len(searches) > 1 and len(set(searches)) == 1
    assert sum(g.get("path") == ".repair/search.py" for _, g in work.said) == 1


def test_a_lost_search_program_is_sent_again(tmp_path: Path) -> None:
    work = Workspace(tmp_path / "w", SIX_FAULTS_TEXT).start({"solution.py": SIX_FAULTS})
    work.play(2)
    shutil.rmtree(work.root / ".repair")
    assert work.play(16) == "submit"
    assert sum(g.get("path") == ".repair/search.py" for _, g in work.said) == 2
    assert work.accepts((work.root / "solution.py").read_text(), tmp_path / "late")


@pytest.mark.parametrize(
    ("faulty", "requirement"),
    [
        ("def f(xs):\n    return max(xs)\n", ">>> f([])\n0\n>>> f([3, 4])\n4\n"),
        ("def f(a, b):\n    return a\n", "f(1, 2) -> 2\nf(3, 4) -> 4\nf(5, 6) -> 6"),
        ("def f(s):\n    return s.upper()\n", "f('Ab') -> 'ab'\nf('c') -> 'c'"),
        (
            "def f(xs):\n    out = []\n    for x in xs:\n        out.append(x)\n"
            "        return out\n    return out\n",
            "f([1, 2]) -> [1, 2]\nf([]) -> []\nf([4]) -> [4]",
        ),
        (
            "def f(n):\n    if n < 1:\n        return None\n    return n\n",
            "f(0) raises ValueError\nf(2) -> 2\nf(-4) raises ValueError",
        ),
        (
            "def f(xs):\n    return sorted(xs)\n",
            "f([1, 3, 2]) -> [3, 2, 1]\nf([5]) -> [5]\nf([1, 2]) -> [2, 1]",
        ),
        ("def f(s):\n    return len(s) * 3600\n", "f('a') -> 60\nf('') -> 0\nf('bc') -> 120"),
        (
            "import re\n\n\ndef f(s):\n    return re.sub('[ _]', '-', s)\n",
            "f('a  b') -> 'a-b'\nf('a b') -> 'a-b'\nf('x_ y') -> 'x-y'",
        ),
        ("def f(s):\n    return s\n", "f('12') -> 12\nf('7') -> 7"),
        ("def f(n):\n    return [i for i in range(n)]\n", "f(2) -> [1, 2]\nf(3) -> [1, 2, 3]"),
    ],
)
def test_common_faults_are_mended(tmp_path: Path, faulty: str, requirement: str) -> None:
    work = Workspace(tmp_path / "w", requirement).start({"solution.py": faulty})
    assert work.play(12) == "submit"
    assert work.accepts((work.root / "solution.py").read_text(), tmp_path / "p")
    assert not work.accepts(faulty, tmp_path / "b")


def test_a_program_that_never_returns_is_rejected_in_time(tmp_path: Path) -> None:
    work = Workspace(tmp_path / "w", REQUIREMENT).start({"solution.py": GOOD})
    work.play(2)
    looping = "def is_leap(year):\n    while True:\n        pass\n"
    done = work.shell("sh submission/run_tests.sh")
    assert done.returncode == 0
    assert not work.accepts(looping, tmp_path / "b")


def test_documents_are_read_and_a_cut_one_loses_examples(tmp_path: Path) -> None:
    lines = "\n".join(f"- `is_leap({2000 + n})` -> `{(2000 + n) % 4 == 0}`" for n in range(40))
    files = {**buggy("== 0 and", "!= 0 and"), "docs/examples.md": lines}
    seen = {}
    for name, cut in (("whole", 20_000), ("cut", 500)):
        style = "You are agent-2. You are bold: x."
        work = Workspace(tmp_path / name, REQUIREMENT, style, cut=cut).start(files)
        work.play(3)
        seen[name] = len(work.suite())
    assert seen["whole"] >= 40
    assert 6 < seen["cut"] < 25


def test_guidance_to_read_in_parts_wins_the_examples_back(tmp_path: Path) -> None:
    lines = "\n".join(f"- `is_leap({2000 + n})` -> `{(2000 + n) % 4 == 0}`" for n in range(40))
    files = {**buggy("== 0 and", "!= 0 and"), "docs/examples.md": lines}
    counts = []
    for guidance in ("", "\n\n## Guidance\nRead long files in parts.\n"):
        style = "You are agent-2. You are bold: x." + guidance
        work = Workspace(tmp_path / str(len(counts)), REQUIREMENT, style, cut=700).start(files)
        work.play(3 if not guidance else 7)
        counts.append(len(work.suite()))
        assert any(g.get("command", "").startswith("sed -n") for _, g in work.said) == bool(
            guidance
        )
    assert counts[1] >= counts[0] + 10


def test_derived_checks_need_as_many_agreeing_repairs_as_the_agent_wants(tmp_path: Path) -> None:
    faulty = "def f(a, b):\n    return a - b\n"
    text = "f(1, 2) -> 3\nf(3, 4) -> 7\nf(5, 6) -> 11\nf(2, 9) -> 11"
    derived = {}
    for name in ("careful", "bold"):
        style = f"You are agent-1. You are {name}: x."
        work = Workspace(tmp_path / name, text, style).start({"solution.py": faulty})
        work.play(20)
        derived[name] = [c for c in work.suite() if not c.stated]
    assert len(derived["bold"]) > len(derived["careful"])
    assert all(c.call.startswith("f(") for c in derived["bold"])


def test_a_task_without_any_example_is_handed_in_without_a_suite(tmp_path: Path) -> None:
    work = Workspace(tmp_path / "w", "Do the right thing.").start({"solution.py": GOOD})
    assert work.play(9) == "submit"
    assert not (work.root / "submission").exists()


def test_an_inconsistent_pair_is_searched_on(tmp_path: Path) -> None:
    work = Workspace(tmp_path / "w", SIX_FAULTS_TEXT).start({"solution.py": SIX_FAULTS})
    work.play(2)
    before = len(work.said)
    work.messages.append({"role": "user", "content": "# Pair is inconsistent\n\noutput"})
    work.play(12)
    assert ".repair/search.py" in work.said[before][1]["command"]
    assert work.accepts((work.root / "solution.py").read_text(), tmp_path / "late")


def test_nothing_is_searched_again_once_all_was_tried(tmp_path: Path) -> None:
    text = "f(1) -> 'one'\nf(2) -> 'two and more'\nf(3) -> 'three of it'"
    files = {"solution.py": "def f(n):\n    return None\n"}
    work = Workspace(tmp_path / "w", text).start(files)
    assert work.play(40) == "submit"
    assert not (work.root / ".repair").exists()
    before = len(work.said)
    work.messages.append({"role": "user", "content": "# Pair is inconsistent\n\noutput"})
    assert work.play(1) == "submit"
    assert len(work.said) == before + 1


def test_a_revision_drops_what_a_review_refutes_and_adds_what_it_supports(tmp_path: Path) -> None:
    work = Workspace(tmp_path / "w", REQUIREMENT).start(buggy("% 400 == 0", "% 400 != 0"))
    work.play(12)
    path = work.root / "submission" / "test_requirement.py"
    row = "    (lambda: is_leap(3), True, '', 'derived'),\n"
    path.write_text(path.read_text().replace("CASES = [\n", "CASES = [\n" + row))
    finding = "## Fault in the {}\n- Input: {}\n- Expected: {}\n- Sentence: s\n"
    text = "# Revise\n\n" + "".join(
        finding.format(*parts)
        for parts in (
            ("suite", "is_leap( 3 )", "False"),
            ("suite", "is_leap(2024)", "True"),
            ("repair", "is_leap(2096)", "True"),
            ("repair", "is_leap(2023)", "True"),
        )
    )
    work.messages.append({"role": "user", "content": text})
    assert work.play(6) == "submit"
    calls = {c.call: c.expected for c in work.suite()}
    assert "is_leap(3)" not in calls
    assert calls["is_leap(2024)"] == "True"
    assert calls["is_leap(2096)"] == "True"
    assert calls["is_leap(2023)"] == "False"


def test_equal_conversations_and_seeds_give_equal_replies(tmp_path: Path) -> None:
    work = Workspace(tmp_path / "w", REQUIREMENT).start(buggy("% 400 == 0", "% 400 != 0"))
    work.play(1)
    first = reply(work.messages, TOOLS, 7, 4_096)
    assert first == reply(json.loads(json.dumps(work.messages)), TOOLS, 7, 4_096)
    assert first != reply(work.messages, TOOLS, 8, 4_096)


def test_a_reply_is_cut_at_the_output_limit(tmp_path: Path) -> None:
    work = Workspace(tmp_path / "w", REQUIREMENT).start(buggy("% 400 == 0", "% 400 != 0"))
    work.play(1)
    whole = reply(work.messages, TOOLS, 1, 4_096)
    cut = reply(work.messages, TOOLS, 1, 100)
    assert whole.finish_reason == "tool_calls" and cut.finish_reason == "length"
    assert cut.tokens == 100
    assert cut.calls[0][1].startswith('{"path": "submission/test_requirement.py"')
    with pytest.raises(ValueError, match="Unterminated"):
        json.loads(cut.calls[0][1])
    assert len(cut.calls[0][1]) + len(cut.calls[0][0]) == 400


def test_tokens_are_four_characters_each() -> None:
    assert Answer("a" * 8).tokens == 2
    assert Answer("a" * 9).tokens == 3
    assert Answer().tokens == 1
    assert estimate_tokens([{"role": "user", "content": "a" * 9}]) == 3 + 4
    call = {"function": {"name": "run", "arguments": "{}"}}
    assert estimate_tokens([{"role": "assistant", "tool_calls": [call]}]) == 2 + 4


def test_a_sentence_about_unchanged_arguments_becomes_checks(tmp_path: Path) -> None:
    text = "The argument list stays unchanged.\n\nf([2, 1]) -> [1, 2]\nf([]) -> []"
    faulty = "def f(xs):\n    xs.sort()\n    return xs\n"
    work = Workspace(tmp_path / "w", text).start({"solution.py": faulty})
    assert work.play(12) == "submit"
    assert ("given = [2, 1]", "f(given)") in {c.setup for c in work.suite()}
    assert not work.accepts(faulty, tmp_path / "b")
    assert work.accepts("def f(xs):\n    return sorted(xs)\n", tmp_path / "g")
    mended = work.accepts((work.root / "solution.py").read_text(), tmp_path / "p")
    assert mended
    silent = Workspace(tmp_path / "s", text.replace("unchanged", "here")).start(
        {"solution.py": faulty}
    )
    silent.play(12)
    assert all(not c.setup for c in silent.suite())


def test_a_suite_that_is_written_can_be_read_back() -> None:
    checks = (
        Check("f(1,2)", "[3]"),
        Check("s.pop()", "'a'", setup=("s = Stack()", "s.push(1)")),
        Check("f(0)", raises="KeyError", stated=False),
    )
    text = write_suite(checks, {"f": "pkg.mod"}, "other", 10_000)
    assert "from pkg.mod import f" in text and "from other import Stack" in text
    back = read_suite(text)
    assert [(c.key, c.wanted, c.stated) for c in back] == [
        (c.key, c.wanted, c.stated) for c in checks
    ]
    short = read_suite(write_suite(checks, {"f": "pkg.mod"}, "other", json_length(text) - 10))
    assert 0 < len(short) < 3 and all(c.stated for c in short)


def test_the_output_of_a_failing_suite_names_its_rows() -> None:
    output = "AssertionError: 1 != 0 : \n(lambda: f(1), 2, '', 'derived'), got 3\nRan 1 test"
    [(check, got)] = read_failures(output)
    assert (check.call, check.expected, check.stated, got) == ("f(1)", "2", False, "3")
