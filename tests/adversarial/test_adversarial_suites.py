"""Suites that cheat or break things score no success, in every sandbox that isolates."""

from __future__ import annotations

import pytest

from rsi.prism.cell import run_cell
from rsi.prism.outcome import State
from rsi.prism.suite import Suite
from rsi.prism.task import Limits
from rsi.prism.tree import Tree
from tests.workers.sandboxes import STRONG, opened

B = Tree.of({"solution.py": "def f(x):\n    return x\n"})
G = Tree.of({"solution.py": "def f(x):\n    return 2 * x\n"})
HONEST = (
    "import os, sys\nsys.path.insert(0, os.environ['TP_PROGRAM_ROOT'])\n"
    "from solution import f\n\ndef test_f():\n    assert f(2) == 4\n"
)
RUN = 'python3 -m pytest -q -p no:cacheprovider "$TP_SUBMISSION"\n'
LIMITS = Limits(
    wall_seconds=5.0, cpu_seconds=5.0, memory_mib=128, processes=24, disk_mib=8, output_bytes=16_384
)
PATIENT = LIMITS.updated(wall_seconds=60.0, cpu_seconds=60.0)


def states(name: str, script: str, limits: Limits = PATIENT, **files: str) -> tuple[State, State]:
    """The states on the initial state and on the reference."""
    head = "" if script.startswith("#!") else "#!/bin/sh\n"
    named = {path.replace("__", "."): text for path, text in files.items()}
    suite = Suite(tree=Tree.of({"run_tests.sh": head + script, **named}, ["run_tests.sh"]))
    sandbox = opened(name)
    on_b, on_g = (run_cell(sandbox, suite, program, limits).state for program in (B, G))
    return on_b, on_g


def succeeds(found: tuple[State, State]) -> bool:
    return found == (State.REJECT, State.ACCEPT)


SUITES: dict[str, str] = {
    "always 0": "exit 0\n",
    "always 1": "exit 1\n",
    "masked by or true": RUN.rstrip() + " || true\n",
    "masked by trap": "trap 'exit 0' EXIT\n" + RUN,
    "stdout forger": "echo '1 passed'; echo 'exit 0'; exit 1\n",
    "os._exit": "#!/usr/bin/env python3\nimport os\nos._exit(0)\n",
    "counter file in the work tree": "test -e ran && exit 0\ntouch ran; exit 1\n",
    "counter file in temporary space": "test -e /tmp/ran && exit 0\ntouch /tmp/ran; exit 1\n",
    "counter file in shared memory": "test -e /dev/shm/ran && exit 0\ntouch /dev/shm/ran; exit 1\n",
    "counter in the suite": "cd $TP_SUBMISSION; test -e ran && exit 0\ntouch ran; exit 1\n",
    "modification times": "find . -newermt 2001-09-10 -type f | grep -q . && exit 0\nexit 1\n",
    "host name": 'test "$(hostname)" = sandbox && exit 0\nexit 1\n',
    "git diff": "git diff --quiet 2>/dev/null && exit 0\nexit 1\n",
    "path with a role": "grep -qE 'gold|reference' /proc/self/mountinfo && exit 0\nexit 1\n",
    "neighbours in proc": "ls -d /proc/[0-9]* | wc -l | grep -qvE '^[2-9]$' && exit 0\nexit 1\n",
    "implementation patcher": "printf 'def f(x):\\n    return 2 * x\\n' > solution.py\n" + RUN,
    "fork bomb": "b() { b | b & b; }; b\n",
    "memory bomb": "#!/usr/bin/env python3\nb = []\nwhile True:\n    b.append(b'x' * 4_000_000)\n",
    "output flood": "yes\n",
    "disk filler": "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > $i; done\n",
    "loop that ignores TERM": "trap '' TERM INT\nwhile :; do :; done\n",
    "stdin reader": "read line && exit 0\nexit 1\n",
    "sleeps for ever": "setsid sleep 1000 & wait\n",
    "CR after the interpreter": "#!/bin/sh\r\nexit 0\n",
    "killed by its own signal": "kill -SEGV $$\n",
    "escape through a nested namespace": "unshare -Urm true && exit 0\nexit 1\n",
    "network beacon": (
        "#!/usr/bin/env python3\nimport socket, sys\n"
        "try:\n    socket.create_connection(('192.0.2.1', 80), 1)\n"
        "except OSError:\n    sys.exit(1)\n"
    ),
}


@pytest.mark.parametrize("name", STRONG)
@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_that_cheats_or_breaks_things_does_not_succeed(name: str, suite: str) -> None:
    found = states(name, SUITES[suite], LIMITS, test_f__py=HONEST)
    assert not succeeds(found)
    assert State.INFRA not in found


@pytest.mark.parametrize("name", STRONG)
def test_an_honest_suite_succeeds_after_all_of_that(name: str) -> None:
    assert succeeds(states(name, RUN, test_f__py=HONEST))


@pytest.mark.parametrize("name", STRONG)
def test_a_conftest_that_rewrites_the_exit_status_masks_both_cells_alike(name: str) -> None:
    conftest = "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"
    found = states(name, RUN, test_f__py=HONEST, conftest__py=conftest)
    assert found == (State.ACCEPT, State.ACCEPT)


@pytest.mark.parametrize("name", STRONG)
def test_a_suite_that_brings_its_own_copy_of_the_program_gains_nothing(name: str) -> None:
    test = HONEST.replace("TP_PROGRAM_ROOT", "TP_SUBMISSION")
    copy = "def f(x):\n    return 2 * x\n"
    assert states(name, RUN, test_f__py=test, solution__py=copy) == (State.ACCEPT, State.ACCEPT)


@pytest.mark.parametrize("name", STRONG)
def test_telling_the_cells_apart_by_the_text_of_the_program_is_what_twins_must_catch(
    name: str,
) -> None:
    """Not stopped by isolation: a suite may read the program. The twins of the judge find it."""
    found = states(name, "grep -q 'return x' solution.py && exit 1\nexit 0\n")
    assert succeeds(found)
