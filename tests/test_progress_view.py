"""The view of a run is a fold over its events."""

from __future__ import annotations

import io
import time
from pathlib import Path

from rich.console import Console

from rsi.progress import Progress, View
from workers.journal import Event, Journal

GENERATION = {
    "number": 2,
    "bestId": "g2-1",
    "rar": 0.5,
    "interval": {"low": 0.4, "high": 0.6},
    "promotedIds": ["g1-2"],
}


def event(kind: str, **data: object) -> Event:
    return Event(0, 0.0, kind, "k", data)


def test_rollouts_failures_tokens_and_dollars_are_counted():
    view = View(planned=10, limits={"rollouts": 10.0, "usd": 2.0})
    view.observe(event("rollout", spend={"inputTokens": 5, "outputTokens": 7, "usd": 0.25}))
    view.observe(event("rollout", failure="lost", spend={}))
    assert (view.done, view.failed, view.tokens, view.usd) == (2, 1, 12, 0.25)
    assert "2/10 rollouts" in view.spent() and "0.25/2.00 USD" in view.spent()


def test_a_generation_is_told_with_its_interval_and_marked_optimistic():
    view = View(planned=10, limits={})
    line = view.observe(event("generation", **GENERATION))
    assert "generation 2" in line and "promoted g1-2" in line
    assert "50.0 % [40.0, 60.0] (training, optimistic)" in line
    assert view.generation == 2


def test_time_left_counts_only_what_this_process_played():
    view = View(planned=12, limits={}, started=time.monotonic() - 60)
    for _ in range(4):
        view.observe(event("rollout"), recalled=True)
    assert view.left_s is None
    for _ in range(4):
        view.observe(event("rollout"))
    assert 55 < view.left_s < 65
    assert 3.5 < view.rate_per_minute < 4.5


def test_plain_lines_where_there_is_no_terminal(tmp_path: Path):
    journal = Journal(tmp_path / "events.jsonl")
    out = io.StringIO()
    console = Console(file=out, force_terminal=False, width=60)
    with Progress(journal, View(planned=1, limits={}), console):
        journal.append("generation", "g2", GENERATION)
        deadline = time.monotonic() + 5
        while not out.getvalue() and time.monotonic() < deadline:
            time.sleep(0.02)
    journal.close()
    assert "generation 2" in out.getvalue()
    assert "\x1b" not in out.getvalue() and out.getvalue().count("\n") == 1
