"""Every sandbox sees the same end of the same cell, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rsi.errors import SandboxFailure
from rsi.ports import Execution
from rsi.prism.cell import run_cell
from rsi.prism.outcome import State
from rsi.prism.suite import Suite
from rsi.prism.task import Limits
from rsi.prism.tree import File, Tree
from tests.workers.sandboxes import ALL, PATIENT, PROGRAM, STRONG, opened, python, run
from workers.sandbox import open_sandbox
from workers.sandbox.scratch import cells_root

WEAK_OR_STRONG = pytest.mark.parametrize("name", ALL)
ONLY_STRONG = pytest.mark.parametrize("name", STRONG)
SHORT = Limits(wall_seconds=1.0)
FORKS = """\
import os, time
for _ in range(400):
    if os.fork() == 0:
        time.sleep(30)
"""
MEMORY = "b = []\nwhile True:\n    b.append(b'x' * 4_000_000)\n"


def running(text: str) -> list[str]:
    """The command lines of live processes that hold a text."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                line = (place / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in line:
                found.append(line.decode("utf-8", "replace"))
    return found


@pytest.fixture(autouse=True)
def nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    # a place of our own, reachable for the user that cells of root belong to
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        os.chmod(place, 0o711)
        monkeypatch.setattr("tempfile.tempdir", place)
        yield
        assert list(cells_root().iterdir()) == []


@WEAK_OR_STRONG
@pytest.mark.parametrize(
    ("script", "exit_code", "signal", "started"),
    [
        ("exit 0\n", 0, None, True),
        ("exit 1\n", 1, None, True),
        ("exit 126\n", 126, None, True),
        ("exit 127\n", 127, None, True),
        ("exit 137\n", 137, None, True),
        ("no-such-command\n", 127, None, True),
        ("kill -9 $$\n", None, 9, True),
        ("kill -TERM $$\n", None, 15, True),
        ("sh -c 'kill -9 $$'\n", 137, None, True),
        ("#!/no/such/interpreter\n", None, None, False),
        ("#!/\n", None, None, False),
    ],
)
def test_the_end_of_the_entry_is_told_exactly(
    name: str, script: str, exit_code: int | None, signal: int | None, started: bool
) -> None:
    done = run(name, script)
    assert (done.exit_code, done.signal, done.started) == (exit_code, signal, started)
    assert (done.killed_by, done.changed, done.tree) == (None, (), None)
    assert done.isolation == name


@WEAK_OR_STRONG
@pytest.mark.parametrize(
    ("suite", "state"),
    [
        ("exec python3 -m pytest -q $TP_SUBMISSION\n", State.ACCEPT),
        ("f() { return 3; }; f\n", State.REJECT),
        ("#!/no/such\n", State.SUITE_ERROR),
        ("kill -9 $$\n", State.SUITE_ERROR),
        ("exit 137\n", State.REJECT),
        ("trap '' TERM INT HUP; setsid sleep 31 & sleep 30\n", State.TIMEOUT),
        ("echo '# more' >> solution.py\n", State.TAMPER),
        ("yes | head -c 100000000\n", State.RESOURCE),
        ("head -c 9000000 /dev/zero > file\n", State.RESOURCE),
    ],
)
def test_a_cell_has_the_state_of_the_table(name: str, suite: str, state: State) -> None:
    text = suite if suite.startswith("#!") else "#!/bin/sh\n" + suite
    test = (
        "import sys, os\nsys.path.insert(0, os.environ['TP_PROGRAM_ROOT'])\n"
        "from solution import f\n\ndef test_f():\n    assert f(2) == 4\n"
    )
    files = {"run_tests.sh": text, "test_f.py": test}
    wall = 1.0 if state is State.TIMEOUT else 60.0
    limits = Limits(wall_seconds=wall, cpu_seconds=60.0, disk_mib=8, memory_mib=256)
    verdict = run_cell(opened(name), Suite(tree=Tree.of(files, ["run_tests.sh"])), PROGRAM, limits)
    assert (verdict.state, verdict.isolation) == (state, name), verdict


@WEAK_OR_STRONG
def test_a_deadline_ends_everything_without_grace(name: str) -> None:
    mark = f"3{time.monotonic_ns() % 1_000_000:06d}"
    script = f"trap '' TERM\nsetsid sleep {mark} &\n(sleep {mark} &)\nsleep {mark}\n"
    done = run(name, script, limits=SHORT)
    assert (done.killed_by, done.exit_code) == ("wall", None)
    assert 1.0 <= done.wall_seconds < 15.0
    assert running(mark) == []


@WEAK_OR_STRONG
def test_a_daemon_does_not_outlive_its_cell_nor_hold_it_up(name: str) -> None:
    mark = f"4{time.monotonic_ns() % 1_000_000:06d}"
    script = (
        f"setsid setsid sleep {mark} &\n(setsid sh -c 'sleep {mark} & sleep {mark}' &)\nexit 4\n"
    )
    done = run(name, script)
    assert (done.exit_code, done.killed_by) == (4, None)
    assert done.wall_seconds < 20
    assert running(mark) == []


@WEAK_OR_STRONG
def test_cpu_time_is_summed_over_processes(name: str) -> None:
    script = "for i in 1 2; do sh -c 'while :; do :; done' & done\nwait\n"
    done = run(name, script, limits=Limits(wall_seconds=60.0, cpu_seconds=1.0))
    assert done.killed_by == "cpu"
    assert 0.9 < done.cpu_seconds < 4.0


@WEAK_OR_STRONG
def test_cpu_time_of_ended_children_counts(name: str) -> None:
    loop = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"
    script = f"while :; do sh -c '{loop}'; done\n"
    done = run(name, script, limits=Limits(wall_seconds=60.0, cpu_seconds=1.0))
    assert done.killed_by == "cpu"


@WEAK_OR_STRONG
def test_a_memory_bomb_is_named(name: str) -> None:
    done = run(name, python(MEMORY), limits=PATIENT.updated(memory_mib=100))
    assert (done.killed_by, done.exit_code) == ("memory", None)


@WEAK_OR_STRONG
def test_memory_is_summed_over_processes_but_shared_pages_count_once(name: str) -> None:
    shared = python(
        "import os, time\nb = b'x' * 40_000_000\n"
        "for _ in range(8):\n    if os.fork() == 0:\n        time.sleep(0.5); os._exit(0)\n"
        "for _ in range(8):\n    os.wait()\n"
    )
    limits = PATIENT.updated(memory_mib=200)
    assert run(name, shared, limits=limits).exit_code == 0
    own = shared.replace("        time", "        b = bytearray(40_000_000); time")
    own = own.replace("bytearray(40_000_000)", "b'y' * 40_000_000").replace("0.5", "6")
    assert run(name, own, limits=limits).killed_by == "memory"


@WEAK_OR_STRONG
def test_a_fork_bomb_is_named(name: str) -> None:
    done = run(name, python(FORKS), limits=PATIENT.updated(processes=20))
    assert (done.killed_by, done.exit_code) == ("processes", None)


@WEAK_OR_STRONG
def test_as_many_processes_as_allowed_may_run(name: str) -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.3 & done\nwait\n"
    assert run(name, script, limits=PATIENT.updated(processes=10)).exit_code == 0


@WEAK_OR_STRONG
def test_cells_side_by_side_do_not_share_the_limit_on_processes(name: str) -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.5 & done\nwait\n"
    limits = PATIENT.updated(processes=10)
    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(lambda _: run(name, script, limits=limits), range(4)))
    assert [d.exit_code for d in done] == [0, 0, 0, 0]


@WEAK_OR_STRONG
def test_a_flood_is_cut_and_a_long_output_is_kept_head_and_tail(name: str) -> None:
    limits = PATIENT.updated(output_bytes=10_000)
    flood = run(name, "yes | head -c 50000000\necho never\n", limits=limits)
    assert flood.killed_by == "output"
    assert len(flood.stdout) < 11_000
    script = "echo head; head -c 100000 /dev/zero; echo tail\necho err >&2\n"
    long = run(name, script, limits=limits)
    assert (long.exit_code, long.killed_by, long.stderr) == (0, None, b"err\n")
    assert long.stdout.startswith(b"head\n\0") and long.stdout.endswith(b"\0tail\n")
    assert b"bytes left out" in long.stdout
    assert len(long.stdout) < 11_000


@WEAK_OR_STRONG
@pytest.mark.parametrize(
    "script",
    [
        "head -c 3000000 /dev/zero > big\n",
        "for i in 1 2 3 4 5; do head -c 500000 /dev/zero > $i; done; sleep 20\n",
        "i=0; while [ $i -lt 2100 ]; do i=$((i+1)); : > f$i; done; sleep 20\n",
    ],
)
def test_a_full_disk_is_named(name: str, script: str) -> None:
    done = run(name, script, limits=PATIENT.updated(disk_mib=2))
    assert done.killed_by == "disk"


@WEAK_OR_STRONG
def test_what_the_program_holds_from_the_start_is_no_use_of_disk(name: str) -> None:
    program = Tree.of({f"{n}.bin": b"x" * 500_000 for n in range(8)})
    limits = PATIENT.updated(disk_mib=2)
    writes = "head -c {} /dev/zero > new; sleep 0.3\n".format
    assert run(name, writes(1_000_000), program=program, limits=limits).killed_by is None
    assert run(name, writes(3_000_000), program=program, limits=limits).killed_by == "disk"


@WEAK_OR_STRONG
def test_output_that_is_no_text_is_kept_as_bytes(name: str) -> None:
    done = run(name, r"printf '\377\376\000x'; printf '\200' >&2; exit 5" + "\n")
    assert (done.stdout, done.stderr, done.exit_code) == (b"\xff\xfe\0x", b"\x80", 5)


@WEAK_OR_STRONG
def test_the_program_is_writable_and_the_suite_is_not_changed(name: str) -> None:
    script = "touch new && mkdir d && echo 1 > d/f && cat $TP_SUBMISSION/data && pwd\n"
    done = run(name, script, more={"data": "fixture\n"})
    assert done.exit_code == 0
    assert done.changed == ()
    assert done.stdout.startswith(b"fixture\n")


@WEAK_OR_STRONG
def test_a_changed_program_file_is_named_and_new_ones_are_not(name: str) -> None:
    program = Tree.of({"a.py": "a", "d/b.py": "b", "c.py": "c"})
    script = "echo > d/b.py; rm c.py; ln -s a.py c.py; touch new.py\n"
    assert run(name, script, program=program).changed == ("c.py", "d/b.py")


@WEAK_OR_STRONG
def test_the_work_tree_comes_back_as_plain_files(name: str) -> None:
    script = """\
ln -s /etc/passwd link; mkfifo fifo; echo new > new.txt; chmod 6755 new.txt; echo x > x.sh
chmod +x x.sh; mkdir -p d/e; echo deep > d/e/f; ln new.txt hard; mkdir __pycache__
echo c > __pycache__/m.pyc; ln -s / slash; echo 2 > solution.py; chmod 000 closed 2>/dev/null
mkdir closed; echo in > closed/in; chmod 000 closed; rm hard
"""
    done = run(name, script, collect=True)
    assert done.tree == Tree.of(
        {"solution.py": "2\n", "x.sh": "x\n", "d/e/f": "deep\n"}, executable=["x.sh"]
    )


@WEAK_OR_STRONG
def test_a_tree_is_collected_even_when_the_command_was_killed(name: str) -> None:
    done = run(name, "echo kept > kept; sleep 30\n", collect=True, limits=SHORT)
    assert done.killed_by == "wall"
    assert done.tree is not None and done.tree.text("kept") == "kept\n"


@WEAK_OR_STRONG
def test_a_work_tree_above_the_caps_is_a_full_disk_and_no_tree(name: str) -> None:
    script = "i=0; while [ $i -lt 2001 ]; do i=$((i+1)); : > f$i; done\n"
    done = run(name, script, collect=True)
    assert (done.killed_by, done.tree) == ("disk", None)


@WEAK_OR_STRONG
def test_a_deep_and_closed_work_tree_is_removed(name: str) -> None:
    script = python(
        "import os\nfor _ in range(1100):\n    os.mkdir('d'); os.chdir('d')\n"
        "os.chdir(os.environ['TP_PROGRAM_ROOT'])\nos.mkdir('c'); os.mkdir('c/c')\n"
        "os.chmod('c/c', 0); os.chmod('c', 0); os.chmod('.', 0)\n"
    )
    limits = PATIENT.updated(disk_mib=64)
    assert run(name, script, limits=limits).started


@WEAK_OR_STRONG
def test_a_command_runs_without_a_submission_and_is_looked_up_on_the_path(name: str) -> None:
    def command(*argv: str) -> Any:
        return opened(name).run(
            Execution(program=PROGRAM, argv=argv, limits=PATIENT, environment={"MORE": "1"})
        )

    done = command("python3", "-c", "import os; print(os.environ['MORE'], os.listdir('.'))")
    assert done.stdout == b"1 ['solution.py']\n"
    assert command("sh", "-c", 'exit "${TP_SUBMISSION:-7}"').exit_code == 7
    assert command("sh", "-c", 'test -d "$TP_OUT" && touch "$TP_OUT/x"').exit_code == 0
    assert command("no-such-command").started is False
    assert command("./solution.py").started is False


@WEAK_OR_STRONG
def test_python_is_new_enough_has_pytest_and_no_other_plugins(name: str) -> None:
    done = run(name, "python3 -m pytest --version 2>&1; pytest -q $TP_SUBMISSION; python -V\n")
    assert b"pytest " in done.stdout and b"Python 3." in done.stdout
    listed = run(
        name, "cd $TP_SUBMISSION; python3 -m pytest -q\n", more={"test_a.py": "def test_a(): 0"}
    )
    assert listed.exit_code == 0
    assert b"plugins" not in listed.stdout


@WEAK_OR_STRONG
def test_standard_input_is_empty_and_signals_are_at_their_defaults(name: str) -> None:
    assert run(name, "cat; test ! -t 0\n").exit_code == 0
    status = run(name, "grep -E '^Sig(Ign|Blk)' /proc/self/status\n").stdout.split()
    assert [int(word, 16) for word in status[1::2]] == [0, 0]


@WEAK_OR_STRONG
def test_descriptors_and_core_files_are_limited(name: str) -> None:
    done = run(name, "ulimit -n; ulimit -c; ulimit -Hn; ulimit -Hc\n")
    assert done.stdout.split() == [b"256", b"0", b"256", b"0"]


@WEAK_OR_STRONG
def test_rewritten_sources_never_meet_stale_bytecode(name: str) -> None:
    script = python(
        "import subprocess, sys\n"
        "def say(n):\n"
        "    open('m.py', 'w').write(f'print({n})')\n"
        "    return subprocess.check_output([sys.executable, '-c', 'import m'])\n"
        "sys.exit(0 if [say(n) for n in (1, 2, 3)] == [b'1\\n', b'2\\n', b'3\\n'] else 1)\n"
    )
    assert run(name, script).exit_code == 0


@WEAK_OR_STRONG
def test_trees_that_cannot_be_written_never_start(name: str) -> None:
    program = Tree(files={"a": File(content=b""), "a/b": File(content=b"")})
    done = run(name, "exit 0\n", program=program)
    assert (done.started, done.exit_code) == (False, None)


@WEAK_OR_STRONG
def test_many_cells_at_once_do_not_meet(name: str) -> None:
    def one(number: int) -> bool:
        done = run(name, f"echo {number} > mine; sleep 0.2; cat mine; ls | wc -l\n")
        return done.stdout.split() == [str(number).encode(), b"2"]

    count = 4 if name == "docker" else 12
    with ThreadPoolExecutor(count) as pool:
        assert all(pool.map(one, range(count)))


@WEAK_OR_STRONG
def test_a_sandbox_can_be_sent_to_another_process(name: str) -> None:
    sandbox = pickle.loads(pickle.dumps(opened(name)))
    assert sandbox.isolation == name
    assert sandbox.run(Execution(program=PROGRAM, argv=("true",), limits=PATIENT)).exit_code == 0


@WEAK_OR_STRONG
def test_a_host_without_room_for_a_cell_is_no_verdict(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = opened(name)
    with monkeypatch.context() as patch, pytest.raises(SandboxFailure):
        patch.setattr("tempfile.tempdir", "/proc/none")
        sandbox.run(Execution(program=PROGRAM, argv=("true",)))


@ONLY_STRONG
def test_all_that_a_suite_can_observe_is_the_same_in_every_cell(name: str) -> None:
    observe = python(
        "import os, json, socket, stat, sys\n"
        "seen = {'env': dict(os.environ), 'cwd': os.getcwd(), 'host': socket.gethostname(),\n"
        " 'ids': [os.getuid(), os.getgid(), os.getgroups()], 'pid': os.getpid(),\n"
        " 'argv': sys.argv,\n"
        " 'root': sorted(os.listdir('/')), 'tmp': sorted(os.listdir('/tmp')), 'files': []}\n"
        "for top in ('.', os.environ['TP_SUBMISSION']):\n"
        "    for place, _, names in os.walk(top):\n"
        "        for path in [place, *(os.path.join(place, n) for n in names)]:\n"
        "            s = os.lstat(path)\n"
        "            seen['files'].append([path, s.st_mtime_ns, s.st_mode, s.st_uid, s.st_size])\n"
        "seen['files'].sort()\n"
        "print(json.dumps(seen))\n"
    )
    os.environ["RSI_PLANTED"] = "gold"
    try:
        program = Tree.of({"solution.py": "x", "d/e.txt": "y"})
        one, two = (json.loads(run(name, observe, program=program).stdout) for _ in range(2))
    finally:
        del os.environ["RSI_PLANTED"]
    # the threads that start a container use up a few process ids, more or less
    pids = one.pop("pid"), two.pop("pid")
    assert one == two
    assert pids == (2, 2) or name == "docker"
    assert (one["cwd"], one["host"]) == ("/work", "sandbox")
    assert one["argv"] == ["/submission/run_tests.sh"]
    assert one["ids"][0] not in (0, os.getuid() or 0)
    assert one["env"]["TP_SUBMISSION"] == "/submission"
    assert one["env"]["TP_PROGRAM_ROOT"] == "/work" == one["env"].get("PWD", "/work")
    assert set(one["env"]) <= {
        *("PATH", "HOME", "TMPDIR", "TZ", "LC_ALL", "LANG", "PYTHONHASHSEED", "PWD", "HOSTNAME"),
        *("PYTHONDONTWRITEBYTECODE", "TP_PROGRAM_ROOT", "TP_OUT", "TP_SUBMISSION", "LC_CTYPE"),
    }
    assert len({row[1] for row in one["files"]}) == 1


@ONLY_STRONG
def test_no_host_path_with_a_meaning_is_visible(name: str) -> None:
    project = Path(__file__).resolve().parents[2]
    done = run(name, "cat /proc/self/mountinfo /proc/1/cmdline /proc/self/environ\n")
    # where the interpreter is installed may show, it is the same in every cell
    text = done.stdout.decode("utf-8", "replace").replace(sys.prefix, "")
    for word in ("gold", "reference", "invalid", "initial", str(project)):
        assert word not in text
    assert run(name, f"test ! -e {project}/rsi\n").exit_code == 0
    hidden = (
        "import importlib.util as u, sys\nsys.exit(any(map(u.find_spec, ['rsi', 'workers'])))\n"
    )
    assert run(name, python(hidden)).exit_code == 0


@ONLY_STRONG
@pytest.mark.parametrize(
    "script",
    [
        'touch "$TP_SUBMISSION/x"',
        'echo x >> "$TP_SUBMISSION/run_tests.sh"',
        'chmod 777 "$TP_SUBMISSION"',
        "touch /x",
        "touch /usr/x",
        "touch /dev/x",
        "touch /etc/x",
        "cat /root/.bashrc /root/.profile",
        "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, 1, 0, 0) != 0)'",
        "unshare -U true",
        "unshare -m true",
        "mount -t tmpfs x /tmp",
        "kill -9 1 && sleep 0.3 && ! kill -0 1",
        "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 2)'",
        "python3 -c 'import socket; socket.getaddrinfo(\"example.org\", 80)'",
        "grep -v ' lo$' /proc/net/dev | tail -n +3 | grep -E 'eth|ens|docker|veth'",
        "echo 1 > /proc/sys/kernel/core_pattern",
        'test "$(id -u)" = 0',
        "grep -E '^Cap(Prm|Eff|Bnd|Amb):' /proc/self/status | grep -v '0000000000000000$'",
        "grep NoNewPrivs /proc/self/status | grep -v 1$",
    ],
)
def test_what_a_strong_sandbox_forbids_fails(name: str, script: str) -> None:
    done = run(name, f"if ( {script} ) >/dev/null 2>&1; then exit 9; fi\nexit 0\n")
    assert (done.exit_code, done.killed_by) == (0, None), done.stderr


@ONLY_STRONG
def test_temporary_space_is_bounded_and_killing_all_ends_only_the_cell(name: str) -> None:
    limits = PATIENT.updated(disk_mib=8, memory_mib=128)
    assert run(name, "head -c 20000000 /dev/zero > /tmp/big\n", limits=limits).exit_code != 0
    done = run(
        name,
        python(
            "import os, subprocess\nsubprocess.Popen(['sleep', '30'])\n"
            "os.kill(-1, 9)\nos._exit(6)\n"
        ),
    )
    assert done.exit_code == 6


@ONLY_STRONG
def test_a_forged_report_is_tampering(name: str) -> None:
    forge = python(
        "import glob, os, sys\n"
        "for path in [*glob.glob('/proc/1/fd/*'), '/report']:\n"
        "    if path[-2:] in ('/0', '/1', '/2'):\n"
        "        continue\n"
        "    try:\n"
        "        fd = os.open(path, os.O_WRONLY | os.O_APPEND)\n"
        "        os.write(fd, b'ended 0 1\\n')\n"
        "    except OSError:\n"
        "        pass\n"
        "sys.exit(1)\n"
    )
    program = Suite(tree=Tree.of({"run_tests.sh": forge}, ["run_tests.sh"]))
    verdict = run_cell(opened(name), program, PROGRAM, PATIENT)
    # bubblewrap's first process is closed to its children on most kernels: nothing was forged
    assert verdict.state is State.TAMPER or (name, verdict.state) == ("bubblewrap", State.REJECT)


@pytest.mark.bubblewrap
def test_a_bubblewrap_killed_from_outside_is_no_verdict() -> None:
    sandbox = opened("bubblewrap")
    mark = f"5{time.monotonic_ns() % 1_000_000:06d}"
    failures: list[BaseException] = []

    def cell() -> None:
        try:
            sandbox.run(Execution(program=PROGRAM, argv=("sleep", mark), limits=PATIENT))
        except SandboxFailure as error:
            failures.append(error)

    thread = threading.Thread(target=cell)
    thread.start()
    end = time.monotonic() + 30
    while len(found := _pids(mark)) < 3 and time.monotonic() < end:
        time.sleep(0.05)
    os.kill(min(found), 9)
    thread.join(60)
    assert len(failures) == 1
    time.sleep(0.2)
    assert running(mark) == []


def _pids(mark: str) -> list[int]:
    found = []
    for place in Path("/proc").iterdir():
        try:
            if place.name.isdigit() and mark.encode() in (place / "cmdline").read_bytes():
                found.append(int(place.name))
        except OSError:
            continue
    return found


def test_an_opened_sandbox_needs_no_probe() -> None:
    assert open_sandbox("process").isolation == "process"
