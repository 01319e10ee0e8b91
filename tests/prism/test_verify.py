"""The verifier derives labels from its own runs and believes no program about itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from rsi.errors import SandboxFailure
from rsi.ports import Completed, Execution, Isolation
from rsi.prism.build.labels import Label, VerifierRun, label_of
from rsi.prism.build.verify import (
    VerifierLimits,
    contradictions,
    doubts,
    relabelled,
    verifier_run,
    verify,
)
from rsi.prism.panel import Check, Implementation, Panel
from rsi.prism.tree import Tree

GOOD = "def double(x):\n    return 2 * x\n"
BAD = "def double(x):\n    return x + 2\n"
CHECKS = ("assert double(0) == 0", "assert double(2) == 4", "assert double(-3) == -6")
QUICK = VerifierLimits(cpu_seconds=1, max_timeouts=2)


class LocalSandbox:
    """Runs an execution as a plain process in a temporary folder; remembers what it was asked."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.executions: list[Execution] = []

    @property
    def isolation(self) -> Isolation:
        return "process"

    def run(self, execution: Execution) -> Completed:
        self.executions.append(execution)
        if self.failures:
            self.failures -= 1
            raise SandboxFailure("no room")
        with tempfile.TemporaryDirectory() as folder:
            work, submission = Path(folder, "work"), Path(folder, "submission")
            for root, tree in ((work, execution.program), (submission, execution.submission)):
                for path, file in (tree or Tree()).files.items():
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    (root / path).write_bytes(file.content)
                    (root / path).chmod(0o755 if file.executable else 0o644)
            return self._run(execution, work, submission)

    def _run(self, execution: Execution, work: Path, submission: Path) -> Completed:
        python = os.path.dirname(sys.executable)
        process = subprocess.Popen(
            [str(submission / execution.argv[0]), *execution.argv[1:]],
            cwd=work,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={
                "PATH": f"{python}:/usr/bin:/bin",
                "TP_SUBMISSION": str(submission),
                **execution.environment,
            },
            start_new_session=True,
        )
        killed = None
        try:
            out, err = process.communicate(timeout=execution.limits.wall_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            killed = "wall"
        code = process.returncode
        return Completed(
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            killed_by=killed,
            stdout=out,
            stderr=err,
            isolation="process",
        )


class SaidSandbox:
    """Answers every execution with what a test says, given the run's key."""

    isolation: Isolation = "process"

    def __init__(self, text: str, exit_code: int | None = 0, **seen: object) -> None:
        self.text, self.exit_code, self.seen = text, exit_code, seen

    def run(self, execution: Execution) -> Completed:
        key = execution.program.text(".verifier-key")
        values = {"isolation": "process", "exit_code": self.exit_code, **self.seen}
        return Completed(stdout=self.text.replace("KEY", key).encode(), **values)


def panel_of(
    *others: tuple[str, str, str], checks: tuple[str, ...] = CHECKS, prelude: str = ""
) -> Panel:
    """A panel of b, g and other (id, kind, source) implementations that shipped labels fit."""
    rows = [("b", "initial", BAD), ("g", "reference", GOOD), *others]
    return Panel(
        task_id="double",
        implementations=tuple(
            Implementation(
                implementation_id=name,
                kind=kind,
                program=Tree.of({"solution.py": source}),
                failed_checks=() if kind in ("reference", "valid") else ("c0", "c2"),
            )
            for name, kind, source in rows
        ),
        prelude=prelude or "from solution import double\n",
        checks=tuple(Check(check_id=f"c{i}", code=code) for i, code in enumerate(checks)),
    )


def run_once(source: str, checks: tuple[str, ...] = CHECKS) -> VerifierRun:
    """One verifier run of a source."""
    program = Tree.of({"solution.py": source})
    return verifier_run(panel_of(checks=checks), program, LocalSandbox(), QUICK)


def test_labels_follow_from_three_runs_of_every_check() -> None:
    panel = panel_of(("v1", "valid", "double = lambda x: x + x\n"), ("i1", "invalid", BAD))
    labels = verify(panel, LocalSandbox())
    assert {name: label.verdict for name, label in labels.items()} == {
        "b": "invalid",
        "g": "valid",
        "v1": "valid",
        "i1": "invalid",
    }
    assert labels["b"].failed_checks == ("c0", "c2")
    assert labels["g"].failed_checks == ()
    assert [run.collected for run in labels["g"].runs] == [3, 3, 3]
    assert contradictions(panel, labels) == ()
    assert doubts(panel, labels) == ()


def test_all_checks_of_an_implementation_share_one_execution_and_runs_differ_in_hash_seed() -> None:
    sandbox = LocalSandbox()
    verify(panel_of(), sandbox, runs=2)
    assert len(sandbox.executions) == 4
    seeds = [e.environment["PYTHONHASHSEED"] for e in sandbox.executions]
    assert seeds == ["0", "1", "0", "1"]
    keys = {e.program.text(".verifier-key") for e in sandbox.executions}
    assert len(keys) == 4


def test_contradicted_labels_are_named_one_line_each() -> None:
    panel = panel_of(("v1", "valid", BAD), ("i1", "invalid", GOOD))
    lines = contradictions(panel, verify(panel, LocalSandbox(), runs=1))
    assert lines == (
        "double: v1 is labelled valid but fails 2 checks: c0, c2",
        "double: i1 is labelled invalid but passes all checks",
    )


def test_other_failed_checks_than_shipped_are_a_contradiction_and_can_be_replaced() -> None:
    panel = panel_of(("i1", "invalid", "def double(x):\n    return 0\n"))
    labels = verify(panel, LocalSandbox(), runs=1)
    assert contradictions(panel, labels) == (
        "double: i1 is shipped with failed checks c0, c2 but fails c1, c2",
    )
    fixed = relabelled(panel, labels)
    assert fixed.implementations[2].failed_checks == ("c1", "c2")
    assert contradictions(fixed, labels) == ()


def test_a_program_without_the_symbol_fails_every_check() -> None:
    assert run_once("x = 1\n").failed == ("c0", "c1", "c2")


def test_a_program_that_does_not_compile_fails_every_check() -> None:
    assert run_once("def double(:\n").failed == ("c0", "c1", "c2")


def test_each_check_has_a_fresh_process() -> None:
    source = "seen = []\ndef double(x):\n    seen.append(x)\n    return 2 * x * len(seen)\n"
    assert run_once(source) == VerifierRun(failed=(), collected=3)


def test_an_endless_loop_fails_its_check_only() -> None:
    source = "def double(x):\n    while x == 2:\n        pass\n    return 2 * x\n"
    run = run_once(source)
    assert run == VerifierRun(failed=("c1",), collected=3)


def test_a_check_that_sleeps_is_ended_by_the_clock() -> None:
    source = "import time\ndef double(x):\n    time.sleep(60 if x == 2 else 0)\n    return 2 * x\n"
    started = time.monotonic()
    assert run_once(source) == VerifierRun(failed=("c1",), collected=3)
    assert 4 <= time.monotonic() - started < 30


def test_time_outs_by_cpu_count_towards_skipping() -> None:
    source = "def double(x):\n    while x:\n        pass\n    return 0\n"
    checks = ("assert double(1) == 2",) * 2 + ("assert double(0) == 0",)
    most_two = verifier_run(
        panel_of(checks=checks), Tree.of({"solution.py": source}), LocalSandbox(), QUICK
    )
    three = QUICK.updated(max_timeouts=5)
    more = verifier_run(
        panel_of(checks=checks), Tree.of({"solution.py": source}), LocalSandbox(), three
    )
    assert most_two.failed == ("c0", "c1", "c2")
    assert more.failed == ("c0", "c1")


def test_skipped_checks_never_count_as_passed() -> None:
    source = "def double(x):\n    while x:\n        pass\n    return 0\n"
    checks = ("assert double(1) == 2",) * 4 + ("assert double(0) == 0",)
    run = run_once(source, checks)
    assert run == VerifierRun(failed=("c0", "c1", "c2", "c3", "c4"), collected=5)


@pytest.mark.parametrize(
    "attack",
    [
        "import os; os._exit(0)",
        "import sys; sys.exit(0)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "print('pass'); import os; os.write(1, b'0 pass\\n1 pass\\n2 pass\\nend\\n'); os._exit(0)",
        "import json; json.loads = json.dumps = lambda *a, **k: 'pass'; raise SystemExit",
        "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'P' * 16)\n"
        "    except OSError: pass\nos._exit(0)",
        "import os\nif os.fork(): os._exit(0)",
    ],
)
def test_a_program_cannot_pass_by_ending_early_or_by_printing(attack: str) -> None:
    assert run_once(f"{attack}\n{BAD}").failed in (("c0", "c1", "c2"), ("c0", "c2"))


def test_forged_lines_on_every_reachable_stream_are_not_believed() -> None:
    source = f"""
import glob, os
lines = b''.join(b'%d pass\\n' % i for i in range(9)) + b'end\\n'
for path in glob.glob('/proc/[0-9]*/fd/1') + ['/dev/stdout']:
    try:
        key = open('.verifier-key', 'rb').read()
    except OSError:
        key = b''
    try:
        parent = os.getppid()
        if path.split('/')[2] in (str(parent), 'stdout'):
            with open(path, 'wb', buffering=0) as out:
                out.write(b''.join(key + b' ' + line for line in lines.splitlines(True)))
    except OSError:
        pass
{BAD}"""
    assert run_once(source).failed == ("c0", "c2")


def test_the_key_is_gone_before_the_program_runs() -> None:
    source = (
        "import os\nassert not os.path.exists('.verifier-key')\n"
        "assert not any(len(v) == 48 and set(v) <= set('0123456789abcdef')\n"
        "               for v in os.environ.values())\n" + GOOD
    )
    assert run_once(source) == VerifierRun(failed=(), collected=3)


def test_a_program_that_reads_the_token_from_the_frames_is_found_out() -> None:
    source = """
import os, sys
def double(x):
    frame = sys._getframe()
    while frame:
        if 'token' in frame.f_locals:
            os.write(frame.f_locals['writer'], frame.f_locals['token'])
            os._exit(0)
        frame = frame.f_back
"""
    run = run_once(source)
    assert run.error == "the program reports checks as passed by itself"
    assert label_of([run], 3).verdict == "unlabelled"


def test_a_program_that_kills_the_verifier_gets_no_label() -> None:
    source = f"import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n{GOOD}"
    run = run_once(source)
    assert run.error == "the verifier did not finish: exit 1"
    assert label_of([run, run], 3).verdict == "unlabelled"


def test_a_memory_bomb_fails_its_check_and_not_the_run() -> None:
    source = "def double(x):\n    return 2 * x if x else len(bytearray(10**10)) * 0\n"
    assert run_once(source) == VerifierRun(failed=("c0",), collected=3)


def test_a_flaky_program_is_quarantined() -> None:
    source = "def double(x):\n    return 2 * x + (hash('a') % 2)\n"
    seeds = {hash_parity(seed) for seed in range(8)}
    assert seeds == {0, 1}, "both parities occur, so that runs disagree"
    panel = panel_of(("v1", "valid", source))
    labels = verify(panel, LocalSandbox(), runs=8)
    assert labels["v1"].verdict == "flaky"
    assert labels["v1"].failed_checks == ()
    assert doubts(panel, labels) == ("double: v1: runs disagree on c0, c1, c2",)
    assert contradictions(panel, labels) == ()


def hash_parity(seed: int) -> int:
    """The parity of hash('a') under a hash seed."""
    environment = {"PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-c", "print(hash('a') % 2)"]
    return int(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)


def test_a_sandbox_failure_is_retried_twice_and_then_gives_no_label() -> None:
    program = Tree.of({"solution.py": GOOD})
    again = LocalSandbox(failures=2)
    assert verifier_run(panel_of(), program, again, QUICK) == VerifierRun(collected=3)
    assert len(again.executions) == 3
    lost = verifier_run(panel_of(), program, LocalSandbox(failures=3), QUICK)
    assert lost.error == "sandbox: no room"


COMPLETE = "".join(f"KEY {i} pass\n" for i in range(4)) + "KEY end\n"
NOT_WHOLE = "the verifier's report is not complete and unique"


@pytest.mark.parametrize(
    ("text", "seen", "error"),
    [
        ("", {}, NOT_WHOLE),
        (COMPLETE.replace("KEY end\n", ""), {}, NOT_WHOLE),
        (COMPLETE.replace("KEY 1 pass\n", ""), {}, NOT_WHOLE),
        (COMPLETE.replace("KEY 3 pass\n", ""), {}, NOT_WHOLE),
        ("KEY 0 fail\n" + COMPLETE, {}, NOT_WHOLE),
        (COMPLETE + "KEY 4 pass\n", {}, NOT_WHOLE),
        (COMPLETE.replace("2 pass", "2 passed"), {}, NOT_WHOLE),
        (COMPLETE.replace("KEY", "0" * 48), {}, NOT_WHOLE),
        (COMPLETE, {"exit_code": 1}, "the verifier did not finish: exit 1"),
        (COMPLETE, {"exit_code": None, "signal": 9}, "the verifier did not finish: signal 9"),
        (COMPLETE, {"started": False}, "the verifier did not finish: exit 0"),
        (COMPLETE, {"killed_by": "memory"}, "the run passed its limit: memory"),
        (COMPLETE, {}, "the program reports checks as passed by itself"),
    ],
)
def test_a_report_that_is_not_exactly_whole_is_an_error(
    text: str, seen: dict[str, object], error: str
) -> None:
    run = verifier_run(panel_of(), Tree.of({"solution.py": GOOD}), SaidSandbox(text, **seen), QUICK)
    assert run == VerifierRun(error=error)


def test_a_panel_without_checks_gives_no_label() -> None:
    labels = verify(panel_of(checks=()), LocalSandbox(), runs=1)
    assert {label.verdict for label in labels.values()} == {"unlabelled"}
    assert labels["g"].reason == "the verifier has no checks"


def seen(*failed: str, collected: int = 2, error: str = "") -> VerifierRun:
    return VerifierRun(failed=failed, collected=collected, error=error)


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ([seen()], "valid"),
        ([seen("a")], "invalid"),
        ([seen("a", "b"), seen("b", "a")], "invalid"),
        ([seen("a"), seen()], "flaky"),
        ([seen("a"), seen("b")], "flaky"),
        ([seen(collected=1)], "unlabelled"),
        ([seen(collected=3)], "unlabelled"),
        ([seen(), seen(error="lost")], "unlabelled"),
        ([], "unlabelled"),
    ],
)
def test_a_label_needs_complete_runs_that_agree(runs: list[VerifierRun], verdict: str) -> None:
    label = label_of(runs, 2)
    assert label.verdict == verdict
    assert label.runs == tuple(runs)
    assert bool(label.failed_checks) == (verdict == "invalid")
    assert label_of(runs, 0).verdict == "unlabelled"


def test_limits_leave_room_for_every_time_out_and_line() -> None:
    limits = VerifierLimits(cpu_seconds=2, max_timeouts=10).of_sandbox(100)
    assert (limits.wall_seconds, limits.cpu_seconds) == (110, 60)
    few = VerifierLimits(cpu_seconds=2).of_sandbox(3)
    assert (few.wall_seconds, few.cpu_seconds) == (54, 39)
    assert limits.output_bytes >= 102 * 64


def test_the_decoy_is_hidden_at_changing_places_among_the_checks() -> None:
    sandbox = LocalSandbox()
    program = Tree.of({"solution.py": GOOD})
    places = set()
    for _ in range(8):
        verifier_run(panel_of(), program, sandbox, QUICK)
        submission = sandbox.executions[-1].submission
        assert submission is not None
        jobs = json.loads(submission.text("jobs.json"))["jobs"]
        assert len(jobs) == 4
        places.add(next(i for i, job in enumerate(jobs) if "raise AssertionError" in job))
    assert len(places) > 1


def test_a_missing_label_is_a_doubt() -> None:
    assert doubts(panel_of(), {"g": Label(verdict="valid")}) == ("double: b: not verified",)
