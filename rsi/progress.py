"""A person's view of a run: a live panel on a terminal, plain lines elsewhere.

The view is a fold over the run's events, so it shows the same thing after a resume.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from workers.journal import Event, Journal

HEARTBEAT_S = 15.0
REFRESH_S = 0.5


@dataclass
class View:
    """What the events say so far; counts are rollouts, seconds are wall time."""

    planned: int
    limits: Mapping[str, float]
    started: float = field(default_factory=time.monotonic)
    done: int = 0
    failed: int = 0
    recalled: int = 0
    tokens: int = 0
    usd: float = 0.0
    stage: str = "starting"
    generation: int = 0
    best: str = "none yet"

    def observe(self, event: Event, *, recalled: bool = False) -> str:
        """Take one event in; returns a line worth printing, or nothing."""
        if event.kind == "rollout":
            self._count(event.data, recalled)
            return ""
        told = _LINES.get(event.kind)
        if event.kind == "generation":
            self.generation = int(event.data.get("number", 0))
            self.best = _best(event.data)
        if event.kind == "candidate":
            self.generation = max(self.generation, int(event.data.get("generation", 0)))
        if event.kind in _STAGES:
            self.stage = _STAGES[event.kind]
        return told(event.data) if told else ""

    def _count(self, data: Mapping[str, Any], recalled: bool) -> None:
        self.done += 1
        self.recalled += recalled
        self.failed += bool(data.get("failure"))
        spend = data.get("spend", {})
        self.tokens += int(spend.get("inputTokens", 0)) + int(spend.get("outputTokens", 0))
        self.usd += float(spend.get("usd", 0.0))

    @property
    def rate_per_minute(self) -> float:
        """Rollouts a minute of this process."""
        return 60 * (self.done - self.recalled) / max(1e-3, time.monotonic() - self.started)

    @property
    def left_s(self) -> float | None:
        """Seconds to the end of the plan at the present rate; None before there is a rate."""
        rate = self.rate_per_minute
        return 60 * max(0, self.planned - self.done) / rate if rate > 0 else None

    def line(self) -> str:
        """The whole view on one line."""
        left = self.left_s
        shown = f"about {_clock(left)} left" if left is not None else "time left unknown"
        failed = f", {self.failed} failed" if self.failed else ""
        search = f" · generation {self.generation}" if self.generation else ""
        best = f" · best {self.best}" if self.generation else ""
        rate = f"{self.rate_per_minute:.0f} rollouts/min"
        return f"{self.stage}{search} · {self.spent()}{failed}{best} · {rate} · {shown}"

    def spent(self) -> str:
        """Spend against the budget."""
        parts = [f"{self.done}/{self.planned} rollouts"]
        ceiling = f"/{self.limits['tokens']:.0f}" if "tokens" in self.limits else ""
        parts.append(f"{self.tokens / 1e6:.2f}M{ceiling} tokens")
        if self.usd or "usd" in self.limits:
            most = f"/{self.limits['usd']:.2f}" if "usd" in self.limits else ""
            parts.append(f"{self.usd:.2f}{most} USD")
        return ", ".join(parts)


class Progress:
    """Follows a journal in a thread and shows the view until the `with` block ends."""

    def __init__(self, journal: Journal, view: View, console: Console) -> None:
        self._journal = journal
        self._view = view
        self._console = console
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="progress", daemon=True)
        self._live = Live(console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        for event in self._journal.events():
            self._view.observe(event, recalled=True)
        self._seen = len(self._journal.events())
        if self._console.is_terminal:
            self._live.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=5)
        if self._console.is_terminal:
            self._live.stop()

    def _follow(self) -> None:
        beat = time.monotonic()
        while not self._stop.is_set():
            for event in self._journal.since(self._seen, REFRESH_S):
                self._seen += 1
                line = self._view.observe(event)
                if line:
                    self._console.print(line, highlight=False, markup=False, soft_wrap=True)
            if self._console.is_terminal:
                self._live.update(self._panel())
            elif time.monotonic() - beat >= HEARTBEAT_S:
                beat = time.monotonic()
                self._console.print(
                    self._view.line(), highlight=False, markup=False, soft_wrap=True
                )

    def _panel(self) -> Table:
        view, left = self._view, self._view.left_s
        grid = Table.grid(padding=(0, 2))
        rows = {
            "stage": f"{view.stage}, generation {view.generation}",
            "spent": view.spent() + (f", {view.failed} failed" if view.failed else ""),
            "best so far": view.best,
            "speed": f"{view.rate_per_minute:.0f} rollouts/min",
            "time left": _clock(left) if left is not None else "unknown yet",
        }
        for name, value in rows.items():
            grid.add_row(name, value)
        return grid


_STAGES = {
    "run_started": "playing",
    "proposal": "screening",
    "generation": "playing",
    "selection": "choosing the winner",
    "winner": "evaluating on the test split",
    "frozen": "done",
}


def _generation_line(data: Mapping[str, Any]) -> str:
    promoted = ", ".join(data.get("promotedIds", [])) or "nobody"
    return f"generation {data.get('number')}: best {_best(data)}, promoted {promoted}"


def _winner_line(data: Mapping[str, Any]) -> str:
    return f"winner: {data.get('candidateId')}"


_LINES = {"generation": _generation_line, "winner": _winner_line}


def _best(data: Mapping[str, Any]) -> str:
    if data.get("rar") is None:
        return str(data.get("bestId") or "none yet")
    span = data.get("interval") or {"low": 0.0, "high": 1.0}
    return (
        f"{data['bestId']} rar {100 * data['rar']:.1f} % "
        f"[{100 * span['low']:.1f}, {100 * span['high']:.1f}] (training, optimistic)"
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
