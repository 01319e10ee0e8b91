"""Watch one running sandbox: drain its pipes, hold it to its limits, know when it is over."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rsi.errors import SandboxFailure
from rsi.ports import KilledBy
from rsi.prism.task import Limits
from workers.sandbox.census import Usage, private_memory
from workers.trees import disk_usage

TICK_SECONDS = 0.02
DISK_TICK_SECONDS = 0.1
DEATH_SECONDS = 30.0
LINGER_SECONDS = 0.3
# a stream may say this many times what is kept of it before it counts as a flood
FLOOD = 16
MIB = 1_024 * 1_024
# more than any tree that is given to a cell: what it holds at the start is counted in full
MAX_GIVEN = 1 << 62


@dataclass
class Capture:
    """The head and the tail of a stream, `kept` bytes in all, and how long it was."""

    kept: int
    total: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)

    def feed(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = self.kept // 2 - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * self.kept:
            del self._tail[: -(self.kept - self.kept // 2)]

    def text(self) -> bytes:
        """What is kept; a cut is marked by a line with the number of bytes left out."""
        tail = bytes(self._tail[-(self.kept - self.kept // 2) :])
        lost = self.total - len(self._head) - len(tail)
        mark = b"\n[... %d bytes left out ...]\n" % lost if lost else b""
        return bytes(self._head) + mark + tail


class Frames:
    """Split a Docker stream into stdout and stderr: frames of an 8-byte header and a payload.

    The header holds the stream (2: stderr) and, big-endian in its last four bytes, the length.
    """

    def __init__(self, captures: tuple[Capture, Capture]) -> None:
        self._captures = captures
        self._header = b""
        self._left = 0
        self._stream = captures[0]

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, cut anywhere."""
        while chunk:
            if self._left == 0:
                missing = 8 - len(self._header)
                self._header, chunk = self._header + chunk[:missing], chunk[missing:]
                if len(self._header) < 8:
                    return
                self._left = int.from_bytes(self._header[4:], "big")
                self._stream = self._captures[1 if self._header[0] == 2 else 0]
                self._header = b""
                continue
            payload, chunk = chunk[: self._left], chunk[self._left :]
            self._stream.feed(payload)
            self._left -= len(payload)


@dataclass
class Watch:
    """The limits of one execution and what is needed to enforce them.

    `feeds` takes what each file descriptor brings; `exit_fd` becomes readable when everything in
    the sandbox is dead (None: when all feeds have ended). `kill` ends everything at once and may
    be called again; `work` is the directory whose bytes count, above the `given_bytes` that it
    held before the start.
    """

    limits: Limits
    captures: tuple[Capture, Capture]
    feeds: dict[int, Callable[[bytes], None]]
    exit_fd: int | None
    usage: Callable[[], Usage]
    kill: Callable[[], None]
    work: Path
    given_bytes: int
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    _started: float = 0.0
    _disk_due: float = 0.0

    def until_over(self) -> KilledBy | None:
        """Block until the sandbox is over; gives the limit for which we killed it.

        Raises SandboxFailure when it outlives the kill.
        """
        killed: KilledBy | None = None
        self._started = time.monotonic()
        due = self._started + TICK_SECONDS
        gone = float("inf")
        with selectors.DefaultSelector() as selector:
            for fd in self.feeds:
                selector.register(fd, selectors.EVENT_READ)
            if self.exit_fd is not None:
                selector.register(self.exit_fd, selectors.EVENT_READ)
            while not self._pump(selector, max(0.0, due - time.monotonic())):
                now = time.monotonic()
                if now < due:
                    continue
                due = now + TICK_SECONDS
                if killed is None and (killed := self._broken_limit(now)) is not None:
                    gone = now + DEATH_SECONDS
                if killed is not None:
                    self.kill()
                if now > gone:
                    raise SandboxFailure(f"sandbox survived its kill for {DEATH_SECONDS} s")
            self.wall_seconds = time.monotonic() - self._started
            self._drain(selector)
        return killed or self._last_look()

    def _pump(self, selector: selectors.BaseSelector, timeout: float) -> bool:
        """Move what is readable; True when the sandbox is over."""
        for key, _ in selector.select(timeout):
            if key.fd == self.exit_fd:
                return True
            self._take(selector, key.fd)
        return self.exit_fd is None and not selector.get_map()

    def _take(self, selector: selectors.BaseSelector, fd: int) -> None:
        try:
            chunk = os.read(fd, 65_536)
        except OSError:
            chunk = b""
        if chunk:
            self.feeds[fd](chunk)
        else:
            selector.unregister(fd)

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """Read what the dead left in their pipes, not longer than LINGER_SECONDS."""
        if self.exit_fd is not None:
            selector.unregister(self.exit_fd)
        end = time.monotonic() + LINGER_SECONDS
        while selector.get_map() and (left := end - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                self._take(selector, key.fd)

    def _broken_limit(self, now: float) -> KilledBy | None:
        limits = self.limits
        if now - self._started >= limits.wall_seconds:
            return "wall"
        if sum(c.total for c in self.captures) > FLOOD * limits.output_bytes:
            return "output"
        usage = self.usage()
        self.cpu_seconds = max(self.cpu_seconds, usage.cpu_seconds)
        if usage.tasks > limits.processes:
            return "processes"
        if usage.cpu_seconds >= limits.cpu_seconds:
            return "cpu"
        most = limits.memory_mib * MIB
        if usage.memory_bytes > most and private_memory(usage.pids) > most:
            return "memory"
        return self._disk(now)

    def _disk(self, now: float) -> KilledBy | None:
        """Look at the disk every 0.1 s, less often when looking is slow."""
        if now < self._disk_due:
            return None
        full = self._full()
        spent = time.monotonic() - now
        self._disk_due = now + max(DISK_TICK_SECONDS, 10 * spent)
        return "disk" if full else None

    def _last_look(self) -> KilledBy | None:
        """A limit that was broken just before the end, or stopped by the file-size limit."""
        if sum(c.total for c in self.captures) > FLOOD * self.limits.output_bytes:
            return "output"
        return "disk" if self._full() else None

    def _full(self) -> bool:
        most = self.given_bytes + self.limits.disk_mib * MIB
        return disk_usage(self.work, most) > most
