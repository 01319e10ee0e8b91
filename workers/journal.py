"""The append-only record of a run: one JSON line an event, synced before it counts."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsi.errors import RunConflict, UserError
from workers.files import cannot_write, sync_folder

log = logging.getLogger(__name__)

Entry = tuple[str, str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Event:
    """One line: position from 0, Unix time in seconds, kind, key within the kind, JSON object."""

    seq: int
    time: float
    kind: str
    key: str
    data: dict[str, Any]

    def to_line(self) -> bytes:
        """Spell the event as one ASCII line; raises ValueError for NaN or infinity."""
        fields = {
            "seq": self.seq,
            "time": self.time,
            "kind": self.kind,
            "key": self.key,
            "data": self.data,
        }
        # ASCII, because model text may hold lone surrogates that UTF-8 cannot
        return json.dumps(fields, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def parse_event(line: bytes, seq: int, where: str) -> Event:
    """Read one line; raises RunConflict naming the line when it is not event `seq`."""
    try:
        event = Event(**json.loads(line))
    except (ValueError, TypeError, RecursionError):
        event = None
    if event is None or event.seq != seq or not _well_formed(event):
        raise RunConflict(
            f"{where}: line {seq + 1} is damaged; restore the file from a copy "
            "or start under a new run id"
        )
    return event


def _well_formed(event: Event) -> bool:
    texts = isinstance(event.kind, str) and isinstance(event.key, str)
    return texts and isinstance(event.time, int | float) and isinstance(event.data, dict)


def read_events(path: Path) -> Iterator[Event]:
    """Read a journal without touching it; an incomplete last line is left out."""
    for event, _ in _scan(path):
        yield event


def _scan(path: Path) -> Iterator[tuple[Event, int]]:
    """Each event with the offset at which its line ends."""
    end = 0
    with path.open("rb") as stream:
        for seq, line in enumerate(stream):
            if not line.endswith(b"\n"):
                return
            end += len(line)
            yield parse_event(line, seq, str(path)), end


class Journal:
    """The one writer of an events file, and an index over it; safe for threads.

    Opening reads the file once and cuts an incomplete last line off; appending costs the same
    whatever the length. The caller holds the lease that makes this the only writer.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._events: list[Event] = []
        self._by_kind: dict[str, list[Event]] = {}
        self._by_key: dict[tuple[str, str], dict[str, Any]] = {}
        self._changed = threading.Condition()
        self._trouble: UserError | None = None
        self._size = 0
        if path.exists():
            for event, self._size in _scan(path):
                self._index(event)
        self._file = self._open()

    def append(self, kind: str, key: str, data: dict[str, Any]) -> Event:
        """Write one event and return it once it is on disk.

        Raises UserError when the disk refuses; the journal then ends where it did before.
        """
        return self.append_all([(kind, key, data)])[0]

    def append_all(self, entries: Sequence[Entry]) -> list[Event]:
        """Write several events with a single sync, all or none; errors as for `append`."""
        if not entries:
            return []
        with self._changed:
            now = round(time.time(), 3)
            first = len(self._events)
            lines = [
                Event(first + n, now, kind, key, data).to_line()
                for n, (kind, key, data) in enumerate(entries)
            ]
            self._write(b"".join(lines))
            # indexed as read back, so a first run and a resumed one see equal values
            events = [parse_event(line, first + n, "event") for n, line in enumerate(lines)]
            for event in events:
                self._index(event)
            self._changed.notify_all()
            return events

    def once(self, kind: str, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the recorded data of `(kind, key)`, or make, append and return it."""
        known = self.get(kind, key)
        if known is not None:
            return known
        made = make()
        with self._changed:
            known = self.get(kind, key)
            return known if known is not None else self.append(kind, key, made).data

    def get(self, kind: str, key: str) -> dict[str, Any] | None:
        """The data last recorded under `(kind, key)`, or None."""
        return self._by_key.get((kind, key))

    def events(self, kind: str | None = None) -> tuple[Event, ...]:
        """All events in order, or those of one kind."""
        with self._changed:
            return tuple(self._events if kind is None else self._by_kind.get(kind, ()))

    def since(self, seq: int, wait_s: float = 0.0) -> tuple[Event, ...]:
        """Events from position `seq` on, after waiting at most `wait_s` for the first of them."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._events) > seq or self.closed, timeout=wait_s)
            return tuple(self._events[seq:])

    @property
    def closed(self) -> bool:
        return self._file < 0

    def close(self) -> None:
        """Close the file; a later append raises UserError."""
        with self._changed:
            self._changed.notify_all()
            if self._trouble is None:
                self._trouble = UserError(f"{self.path}: the journal is closed")
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def _open(self) -> int:
        try:
            fresh = not self.path.exists()
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            torn = os.fstat(handle).st_size - self._size
            if torn:
                os.ftruncate(handle, self._size)
                os.fsync(handle)
                log.warning("%s: cut off an incomplete last line of %d bytes", self.path, torn)
            if fresh:
                sync_folder(self.path.parent)
        except OSError as error:
            raise cannot_write(self.path, error) from error
        return handle

    def _write(self, block: bytes) -> None:
        if self._trouble is not None:
            raise self._trouble
        try:
            rest = memoryview(block)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except OSError as error:
            self._take_back(error)
        self._size += len(block)

    def _take_back(self, error: OSError) -> None:
        trouble = cannot_write(self.path, error)
        try:
            os.ftruncate(self._file, self._size)
            os.fsync(self._file)
        except OSError:
            # the tail on disk is unknown: refuse to write behind it, the next start repairs it
            self._trouble = trouble
        raise trouble from error

    def _index(self, event: Event) -> None:
        self._events.append(event)
        self._by_kind.setdefault(event.kind, []).append(event)
        self._by_key[(event.kind, event.key)] = event.data
