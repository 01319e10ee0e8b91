"""The journal: nothing acknowledged is lost, nothing half-written counts."""

from __future__ import annotations

import json
import logging
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rsi.errors import RunConflict, UserError
from workers.journal import Journal, read_events


def journal_with(path: Path, count: int) -> Journal:
    journal = Journal(path)
    journal.append_all([("candidate", f"c{n}", {"n": n}) for n in range(count)])
    return journal


def test_events_are_read_back_in_order_with_their_positions(tmp_path: Path) -> None:
    with_events = journal_with(tmp_path / "events.jsonl", 3)
    with_events.append("decision", "d", {"promoted": True})
    with_events.close()
    again = Journal(tmp_path / "events.jsonl")
    assert [(e.seq, e.kind, e.key) for e in again.events()] == [
        (0, "candidate", "c0"),
        (1, "candidate", "c1"),
        (2, "candidate", "c2"),
        (3, "decision", "d"),
    ]
    assert again.get("decision", "d") == {"promoted": True}
    assert [e.data["n"] for e in again.events("candidate")] == [0, 1, 2]
    assert again.events("winner") == ()
    assert again.get("winner", "d") is None


def test_each_event_is_one_json_line_with_the_five_agreed_keys(tmp_path: Path) -> None:
    before = time.time()
    journal = Journal(tmp_path / "events.jsonl")
    journal.append("lesson", "l\n1", {"text": "a\nb\u2028\ud800é"})
    lines = (tmp_path / "events.jsonl").read_bytes().split(b"\n")
    assert lines[1:] == [b""]
    event = json.loads(lines[0])
    assert list(event) == ["seq", "time", "kind", "key", "data"]
    assert event["seq"] == 0 and event["kind"] == "lesson" and event["key"] == "l\n1"
    assert event["data"] == {"text": "a\nb\u2028\ud800é"}
    assert before - 1 <= event["time"] <= time.time() + 1


@pytest.mark.parametrize("cut", [1, 2, 20])
def test_a_torn_last_line_is_cut_off_once_and_appending_goes_on(
    tmp_path: Path, cut: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "events.jsonl"
    journal_with(path, 3).close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert [e.key for e in read_events(path)] == ["c0", "c1"]
    assert path.read_bytes() == whole[:-cut], "reading repairs nothing"
    with caplog.at_level(logging.WARNING):
        journal = Journal(path)
    assert len(caplog.records) == 1 and "incomplete last line" in caplog.text
    assert [e.key for e in journal.events()] == ["c0", "c1"]
    journal.append("candidate", "c2", {"n": 2})
    journal.close()
    caplog.clear()
    again = Journal(path)
    assert [(e.seq, e.key) for e in again.events()] == [(0, "c0"), (1, "c1"), (2, "c2")]
    assert caplog.records == []


@pytest.mark.parametrize(
    "damage",
    [b"{}\n", b"not json\n", b"\n", b"[1]\n", b"\xff\n", b"\0" * 40 + b"\n"],
)
def test_a_damaged_line_in_the_middle_is_refused_by_number(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "events.jsonl"
    journal_with(path, 4).close()
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = damage
    path.write_bytes(b"".join(lines))
    with pytest.raises(RunConflict, match="line 3 is damaged"):
        Journal(path)
    assert path.read_bytes() == b"".join(lines)


def test_a_line_that_is_missing_or_doubled_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    journal_with(path, 4).close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1] + lines[2:]))
    with pytest.raises(RunConflict, match="line 2 "):
        Journal(path)
    path.write_bytes(b"".join(lines[:2] + lines[1:]))
    with pytest.raises(RunConflict, match="line 3 "):
        Journal(path)


def test_once_makes_a_thing_once_also_across_restarts(tmp_path: Path) -> None:
    made = []

    def make() -> dict[str, object]:
        made.append(1)
        return {"pair": (1, 2)}

    journal = Journal(tmp_path / "events.jsonl")
    first = journal.once("proposal", "p", make)
    second = journal.once("proposal", "p", make)
    journal.close()
    third = Journal(tmp_path / "events.jsonl").once("proposal", "p", make)
    assert len(made) == 1
    # a fresh run and a resumed one see the very same value
    assert first == second == third == {"pair": [1, 2]}
    assert len(list(read_events(tmp_path / "events.jsonl"))) == 1


def test_once_records_nothing_when_making_fails(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    with pytest.raises(ZeroDivisionError):
        journal.once("proposal", "p", lambda: {"x": 1 / 0})
    assert journal.events() == ()
    assert journal.once("proposal", "p", lambda: {"x": 2}) == {"x": 2}


def test_the_last_event_of_a_key_answers_and_both_stay(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    journal.append("dispatched", "r", {"attempt": 1})
    journal.append("dispatched", "r", {"attempt": 2})
    assert journal.get("dispatched", "r") == {"attempt": 2}
    assert len(journal.events("dispatched")) == 2


def test_what_json_cannot_hold_is_refused_and_leaves_no_trace(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    with pytest.raises(ValueError):
        journal.append_all([("a", "1", {}), ("a", "2", {"x": float("nan")})])
    assert (tmp_path / "events.jsonl").read_bytes() == b""
    assert journal.events() == ()


def test_threads_append_without_mixing_lines(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")

    def write(name: int) -> None:
        for n in range(25):
            journal.append("rollout", f"{name}/{n}", {"text": "x" * 3_000})

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = list(read_events(tmp_path / "events.jsonl"))
    assert len({e.key for e in events}) == 100
    assert [e.seq for e in events] == list(range(100))


def test_a_follower_waits_for_news_and_gets_only_what_is_new(tmp_path: Path) -> None:
    journal = journal_with(tmp_path / "events.jsonl", 2)
    assert [e.key for e in journal.since(1)] == ["c1"]
    assert journal.since(2, wait_s=0.01) == ()
    threading.Timer(0.05, journal.append, ("winner", "w", {})).start()
    assert [e.key for e in journal.since(2, wait_s=20)] == ["w"]


def test_a_closed_journal_refuses_to_append(tmp_path: Path) -> None:
    journal = journal_with(tmp_path / "events.jsonl", 1)
    journal.close()
    journal.close()
    with pytest.raises(UserError, match="closed"):
        journal.append("a", "b", {})


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from rsi.errors import UserError
from workers.journal import Journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal(Path(sys.argv[1]))
journal.append("rollout", "small", {})
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
try:
    journal.append("rollout", "big", {"text": "x" * 10_000})
except UserError as error:
    print(error)
assert journal.get("rollout", "big") is None
assert [e.key for e in journal.events()] == ["small"]
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.append("rollout", "later", {})
"""


def test_a_full_disk_is_one_clear_error_and_nothing_half_written_stays(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"{path}: cannot write: File too large; make room")
    assert done.stdout.count("\n") == 1
    assert [(e.seq, e.key) for e in read_events(path)] == [(0, "small"), (1, "later")]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4096


def test_a_disk_that_does_not_sync_is_an_error_and_the_event_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = journal_with(tmp_path / "events.jsonl", 1)
    size = (tmp_path / "events.jsonl").stat().st_size

    def refuse(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(UserError, match="No space left on device"):
        journal.append("a", "b", {})
    assert journal.get("a", "b") is None
    assert (tmp_path / "events.jsonl").stat().st_size == size
    monkeypatch.undo()
    # what reached the disk is unknown by now, so this writer stays shut
    with pytest.raises(UserError, match="No space left on device"):
        journal.append("a", "c", {})
    journal.close()
    assert [e.key for e in Journal(tmp_path / "events.jsonl").events()] == ["c0"]


def test_every_append_is_synced_and_a_group_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    synced = []
    monkeypatch.setattr("os.fsync", lambda handle: synced.append(handle))
    journal.append("a", "1", {})
    assert len(synced) == 1
    journal.append_all([("a", "2", {}), ("a", "3", {})])
    assert len(synced) == 2
    assert journal.append_all([]) == []
    assert len(synced) == 2


def test_ten_thousand_events_load_and_grow_in_linear_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda handle: None)
    path = tmp_path / "events.jsonl"

    def seconds(count: int) -> float:
        path.unlink(missing_ok=True)
        journal = Journal(path)
        start = time.process_time()
        for n in range(count):
            journal.append("rollout", f"r{n}", {"f": 1})
        journal.close()
        again = Journal(path)
        assert again.get("rollout", f"r{count - 1}") == {"f": 1}
        again.close()
        return time.process_time() - start

    small, large = seconds(2_000), seconds(10_000)
    assert large < 15 * small + 0.5
    assert large < 20
