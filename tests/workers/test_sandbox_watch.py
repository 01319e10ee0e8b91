"""The parts that all sandboxes share: captures, streams, reports, environments, directories."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import pytest

from rsi.errors import SandboxFailure, SubmissionError
from rsi.ports import Execution
from rsi.prism.task import Limits
from rsi.prism.tree import Tree
from workers.sandbox import interpreter
from workers.sandbox import scratch as scratch_module
from workers.sandbox import watch as watch_module
from workers.sandbox.cell import Ending, cell_environment, refused, supervised
from workers.sandbox.census import Usage, private_memory, take_census
from workers.sandbox.interpreter import running_interpreter
from workers.sandbox.scratch import cells_root, scratch, sweep
from workers.sandbox.watch import Capture, Frames, Watch


def test_a_capture_keeps_all_of_a_short_stream() -> None:
    capture = Capture(10)
    for chunk in (b"0123", b"4567", b"89"):
        capture.feed(chunk)
    assert capture.text() == b"0123456789"
    assert capture.total == 10


def test_a_capture_keeps_head_and_tail_and_says_how_much_it_lost() -> None:
    capture = Capture(10)
    for number in range(100):
        capture.feed(b"%02d" % number)
    assert capture.text() == b"00010\n[... 190 bytes left out ...]\n79899"
    assert capture.total == 200


def test_frames_are_split_by_stream_wherever_the_bytes_are_cut() -> None:
    stream = b"\x01\0\0\0\0\0\0\x03out" + b"\x02\0\0\0\0\0\x01\x00" + b"e" * 256
    stream += b"\x01\0\0\0\0\0\0\x00" + b"\x01\0\0\0\0\0\0\x01!"
    for size in (1, 3, 8, 11, 1_000):
        out, err = Capture(1_000), Capture(1_000)
        frames = Frames((out, err))
        for start in range(0, len(stream), size):
            frames.feed(stream[start : start + size])
        assert (out.text(), err.text()) == (b"out!", b"e" * 256)


@pytest.mark.parametrize(
    ("report", "code", "ending"),
    [
        (b"started\nended 0 1\n", 0, Ending(status=0, left=1)),
        (b"started\nended 768 1\n", 3, Ending(status=768, left=1)),
        (b"started\nended 9 2\n", 137, Ending(status=9, left=2)),
        (b"started\nended 139 1\n", 139, Ending(status=139, left=1)),  # SIGSEGV with a core
        (b"failed 2\n", 127, Ending(errno=2)),
        (b"started\nended 0 1\n", 1, Ending(status=0, left=1, forged=True)),
        (b"started\nended 0 1\nended 256 1\n", 1, Ending(forged=True)),
        (b"started\nnonsense\n", 0, Ending(forged=True)),
        (b"started\n", 0, Ending(forged=True)),
        (b"started\n", 137, None),
        (b"started\n", -9, None),
        (b"", 1, None),
        (b"failed 2\n", 0, None),
        (b"failed 2\nfailed 3\n", 127, None),
    ],
)
def test_a_report_counts_only_when_the_exit_agrees(
    report: bytes, code: int, ending: Ending | None
) -> None:
    assert Ending.read(report, code) == ending


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.ETXTBSY])
def test_a_command_that_lacks_host_resources_is_no_verdict(number: int) -> None:
    with pytest.raises(SandboxFailure, match="could not start"):
        Ending.read(b"failed %d\n" % number, 127)


def test_the_environment_is_constant_and_the_execution_may_change_it() -> None:
    execution = Execution(program=Tree(), argv=("x",), environment={"HOME": "/h", "MORE": "1"})
    found = cell_environment(execution, program="/w", submission="/s", out="/o", tools="/t")
    assert found == {
        "PATH": "/t:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/h",
        "TMPDIR": "/tmp",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TP_PROGRAM_ROOT": "/w",
        "TP_OUT": "/o",
        "TP_SUBMISSION": "/s",
        "MORE": "1",
    }
    bare = cell_environment(execution, program="/w", submission=None, out="/o", tools="/t")
    assert "TP_SUBMISSION" not in bare


def test_only_an_entry_of_the_submission_gets_its_path() -> None:
    limits = Limits(processes=7, disk_mib=3)
    entry = Execution(program=Tree(), argv=("a.sh", "b"), entry_in_submission=True, limits=limits)
    assert supervised(entry, "py", "5", "/s")[5:] == ["5", "9", str(3 << 20), "/s/a.sh", "b"]
    command = Execution(program=Tree(), argv=("sh", "b"), limits=limits)
    line = supervised(command, "py", "5", "/s", held_by="nobody")
    assert line[:4] == ["py", "-I", "-S", "-c"]
    assert line[5:] == ["5", "0", str(3 << 20), "sh", "b"]
    grouped = supervised(command, "py", "5", "/s", held_by="group")
    assert grouped[5:7] == ["5", "-9"]


def test_trees_that_cannot_be_files_never_start() -> None:
    done = refused(SubmissionError("a: is both a file and a folder"), "process")
    assert (done.started, done.exit_code) == (False, None)
    assert b"both a file" in done.stderr


def test_a_census_counts_threads_memory_and_time_of_all_descendants() -> None:
    mine = take_census(os.getpid())
    assert os.getpid() in mine.pids
    assert mine.tasks >= 1
    assert mine.memory_bytes > 5_000_000
    assert mine.cpu_seconds > 0
    assert 1_000_000 < private_memory((os.getpid(),)) <= mine.memory_bytes
    assert take_census(2**22 + 1).pids == ()
    assert private_memory((2**22 + 1,)) == 0


def test_directories_of_cells_are_opaque_private_and_gone_afterwards() -> None:
    with scratch() as one, scratch() as two:
        assert one != two
        assert len(one.name) == 16 and int(one.name, 16) >= 0
        assert one.stat().st_mode & 0o777 == 0o711
        (one / "work").mkdir()
    assert not one.exists() and not two.exists()


def test_a_directory_of_a_dead_owner_is_swept_and_a_used_or_young_one_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(scratch_module, "cells_root", lambda: tmp_path)
    old = time.time() - 1_000
    with scratch_module.scratch() as used:
        for name in ("dead", "young"):
            (tmp_path / name / "in").mkdir(parents=True)
        for place in (used, tmp_path / "dead"):
            os.utime(place, (old, old))
        assert sweep() == 1
        assert used.exists()
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["young", used.name])


def test_a_root_of_cells_that_is_not_ours_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"rsi-cells-{os.getuid()}").symlink_to("/usr")
    with pytest.raises(SandboxFailure, match="TMPDIR"):
        cells_root()


def test_the_interpreter_brings_pytest_and_hides_all_else() -> None:
    found = running_interpreter()
    assert Path(found.executable).is_file() and not Path(found.executable).is_symlink()
    assert found.site in found.hidden
    names = [name for _, name in found.packages]
    assert {"pytest", "_pytest", "pluggy", "iniconfig", "packaging"} <= set(names)
    assert not {"rsi", "ray", "hypothesis", "xdist", "..", "__pycache__"} & set(names)
    assert all(Path(source).exists() for source, _ in found.packages)


def test_packages_without_bytecode_are_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fresh", "done"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("x = 1\n")
    compiled = Path(cache_from_source(str(tmp_path / "done/__init__.py")))
    compiled.parent.mkdir()
    compiled.write_bytes(b"old")
    packages = tuple((str(tmp_path / name), name) for name in ("fresh", "done"))
    monkeypatch.setattr(interpreter, "provided_packages", lambda: packages)
    interpreter.compile_packages()
    assert Path(cache_from_source(str(tmp_path / "fresh/__init__.py"))).is_file()
    assert compiled.read_bytes() == b"old"


def watched(**changes: Any) -> Watch:
    """A watch of nothing but a pair of captures, with what a test changes."""
    values: dict[str, Any] = {
        "limits": Limits(wall_seconds=0.2),
        "captures": (Capture(1_024), Capture(1_024)),
        "feeds": {},
        "exit_fd": None,
        "usage": Usage,
        "kill": lambda: None,
        "work": Path("/none"),
        "given_bytes": 0,
    }
    return Watch(**{**values, **changes})


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    pair = os.pipe()
    yield pair
    for fd in pair:
        with suppress(OSError):
            os.close(fd)


def test_a_sandbox_that_survives_its_kill_is_no_verdict(
    ends: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "DEATH_SECONDS", 0.3)
    kills: list[float] = []
    watch = watched(
        feeds={ends[0]: lambda chunk: None}, kill=lambda: kills.append(time.monotonic())
    )
    with pytest.raises(SandboxFailure, match="survived its kill"):
        watch.until_over()
    assert len(kills) > 3


def test_a_pipe_that_is_held_open_after_the_end_is_left_after_a_moment(
    ends: tuple[int, int],
) -> None:
    over, tell = os.pipe()
    out = Capture(1_024)
    os.write(ends[1], b"last words")
    os.write(tell, b"x")
    watch = watched(captures=(out, Capture(9)), feeds={ends[0]: out.feed}, exit_fd=over)
    before = time.monotonic()
    assert watch.until_over() is None
    assert 0.25 < time.monotonic() - before < 5
    assert watch.wall_seconds < 0.2
    assert out.text() == b"last words"
    os.close(over)
    os.close(tell)


@pytest.mark.parametrize(
    ("usage", "killed_by"),
    [
        (Usage(tasks=64), "wall"),
        (Usage(tasks=65), "processes"),
        (Usage(cpu_seconds=9.9), "wall"),
        (Usage(cpu_seconds=10.0), "cpu"),
        (Usage(memory_bytes=1 << 40), "wall"),  # resident, but nothing of it is theirs
    ],
)
def test_each_limit_is_held_at_its_boundary(
    ends: tuple[int, int], usage: Usage, killed_by: str
) -> None:
    read, write = ends
    watch = watched(
        feeds={read: lambda chunk: None}, usage=lambda: usage, kill=lambda: os.close(write)
    )
    assert watch.until_over() == killed_by
    assert watch.cpu_seconds == usage.cpu_seconds


@pytest.mark.parametrize(("more", "killed_by"), [(0, None), (1, "output")])
def test_a_flood_just_before_the_end_is_seen_by_the_last_look(
    more: int, killed_by: str | None
) -> None:
    limits = Limits(output_bytes=1_024)
    said = watch_module.FLOOD * limits.output_bytes
    streams = (Capture(1_024, total=said - 5), Capture(1_024, total=5 + more))
    assert watched(limits=limits, captures=streams).until_over() == killed_by
