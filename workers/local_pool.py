"""Rollouts in threads of this process: for tests, laptops and machines without Ray."""

from __future__ import annotations

import queue
import threading
from typing import Generic, Self

from rsi.errors import SettingsError
from rsi.records import RolloutRequest
from workers.pool import Attempt, Play, Spec


class LocalPool(Generic[Spec]):
    """A thread for each rollout, at most `slots` at once.

    Threads cannot be killed: `cancel` throws results away, and a cancelled rollout ends at its
    own caps or with the process. Raises SettingsError for fewer than one slot.
    """

    def __init__(self, play: Play[Spec], spec: Spec, slots: int) -> None:
        if slots < 1:
            raise SettingsError(f"cluster.slots={slots}: must be at least 1")
        self._play = play
        self._spec = spec
        self._slots = threading.Semaphore(slots)
        self._window = slots
        self._done: queue.SimpleQueue[Attempt] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()

    @property
    def window(self) -> int:
        return self._window

    def submit(self, request: RolloutRequest) -> None:
        """Start one rollout as soon as a slot is free."""
        # daemons, so that Ctrl-C need not wait for a rollout
        threading.Thread(
            target=self._run, args=(request, self._done), name="rollout", daemon=True
        ).start()

    def collect(self, timeout_s: float) -> list[Attempt]:
        """Give finished rollouts; see RolloutPool."""
        found: list[Attempt] = []
        try:
            found.append(self._done.get(timeout=timeout_s))
            while True:
                found.append(self._done.get_nowait())
        except queue.Empty:
            pass
        return found

    def cancel(self) -> None:
        """Forget what was submitted."""
        self._done = queue.SimpleQueue()

    def _run(self, request: RolloutRequest, done: queue.SimpleQueue[Attempt]) -> None:
        with self._slots:
            if done is not self._done:
                return
            try:
                done.put(Attempt(request, self._play(self._spec, request)))
            except BaseException as error:
                # for the thread that collects: here nobody would see it
                done.put(Attempt(request, error))
