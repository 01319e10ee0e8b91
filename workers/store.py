"""The run directory: write-once inputs, the journal, and the files that hang on it.

runs/<run_id>/
    settings.yaml           what the run was started with; never changes
    events.jsonl            the truth, append-only
    strategies/             every strategy by id
    trajectories/           what the agents did, gzip JSON by rollout id
    outcomes/ lineage.json  projections of the journal, rebuildable
    frozen_strategy.json summary.json
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import yaml
from filelock import FileLock, Timeout

from rsi.errors import RunConflict
from rsi.strategy import Strategy
from rsi.trajectory import Trajectory
from workers.files import as_json as as_json
from workers.files import cannot_write, drop_leftovers, write_atomic
from workers.journal import Event, Journal
from workers.projections import lineage_of, outcomes_of
from workers.run_ids import check_run_id

_LOCK, _HOLDER = "lease.lock", "lease.json"
_ABSENT = "(absent)"
_SHOWN_DIFFERENCES = 12


class RunStore:
    """One run on disk, held exclusively by this process until `close`; a context manager."""

    def __init__(self, folder: Path, lease: FileLock, inputs: dict[str, Any]) -> None:
        self.folder = folder
        self.run_id = folder.name
        self.inputs = inputs
        self.journal = Journal(folder / "events.jsonl")
        self.resumed = bool(self.journal.events())
        self._lease = lease

    @classmethod
    def create_or_resume(cls, runs_dir: Path, run_id: str, inputs: dict[str, Any]) -> Self:
        """Open a run, new or interrupted; changes nothing on disk unless that is allowed.

        Raises RunConflict when another process holds the run, when `inputs` (JSON) differ from
        those it was started with, or when the journal is damaged; SettingsError for a bad id.
        """
        folder = runs_dir.absolute() / check_run_id(run_id)
        wanted = json.loads(json.dumps(inputs, allow_nan=False))
        try:
            _refuse_foreign(folder)
            _refuse_changes(folder, wanted)
        except OSError as error:
            raise cannot_write(folder, error) from error
        lease = _take_lease(folder)
        try:
            # again, now that nobody else can have written in between
            _refuse_changes(folder, wanted)
            drop_leftovers(folder)
            if not (folder / "settings.yaml").exists():
                text = yaml.safe_dump(wanted, sort_keys=False, allow_unicode=True)
                write_atomic(folder / "settings.yaml", text)
            return cls(folder, lease, wanted)
        except BaseException:
            lease.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the journal and give the lease back."""
        self.journal.close()
        self._lease.release()

    def append(self, kind: str, key: str, data: dict[str, Any]) -> Event:
        """Record an event; see Journal.append."""
        return self.journal.append(kind, key, data)

    def once(self, kind: str, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Record what `make` gives unless `(kind, key)` is recorded; return what is recorded."""
        return self.journal.once(kind, key, make)

    def get(self, kind: str, key: str) -> dict[str, Any] | None:
        """What is recorded under `(kind, key)`, or None."""
        return self.journal.get(kind, key)

    def events(self, kind: str | None = None) -> tuple[Event, ...]:
        """All events in order, or those of one kind."""
        return self.journal.events(kind)

    def save_strategy(self, strategy: Strategy) -> Path:
        """Keep a strategy under strategies/<strategy_id>.json."""
        path = self.folder / "strategies" / f"{strategy.strategy_id}.json"
        if not path.exists():
            write_atomic(path, as_json(strategy.to_json()))
        return path

    def save_trajectories(self, rollout_id: str, trajectories: Sequence[Trajectory]) -> None:
        """Keep what the agents of a rollout did."""
        body = json.dumps([item.to_json() for item in trajectories]).encode()
        path = trajectory_path(self.folder, rollout_id)
        write_atomic(path, gzip.compress(body, compresslevel=6, mtime=0))

    def load_trajectories(self, rollout_id: str) -> tuple[Trajectory, ...]:
        """What the agents of a rollout did; empty when nothing was kept."""
        return load_trajectories(self.folder, rollout_id)

    def write_json(self, name: str, value: Any) -> Path:
        """Write one of the run's JSON files, such as summary.json, in one step."""
        path = self.folder / name
        write_atomic(path, as_json(value))
        return path

    def write_projections(self) -> None:
        """Rebuild lineage.json and outcomes/ from the journal."""
        write_projections(self.folder, self.events())


def write_projections(folder: Path, events: Sequence[Event]) -> None:
    """Write lineage.json and outcomes/<strategy_id>.json of a run directory from its events."""
    write_atomic(folder / "lineage.json", as_json(lineage_of(events)))
    for strategy_id, rows in outcomes_of(events).items():
        write_atomic(folder / "outcomes" / f"{strategy_id}.json", as_json(rows))


def trajectory_path(folder: Path, rollout_id: str) -> Path:
    """Where the trajectories of a rollout are kept in a run directory."""
    return folder / "trajectories" / f"{rollout_id}.json.gz"


def load_trajectories(folder: Path, rollout_id: str) -> tuple[Trajectory, ...]:
    """Read the trajectories of a rollout from a run directory; empty when nothing was kept."""
    path = trajectory_path(folder, rollout_id)
    if not path.exists():
        return ()
    try:
        items = json.loads(gzip.decompress(path.read_bytes()))
        return tuple(Trajectory.model_validate(item) for item in items)
    except (OSError, EOFError, ValueError, TypeError, zlib.error):
        raise RunConflict(f"{path}: damaged; delete it to go on without it") from None


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Name each place where two JSON values differ, as `dotted.key: old → new`."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(k for k in new if k not in old)]:
            below = f"{path}.{key}" if path else str(key)
            yield from differences(old.get(key, _ABSENT), new.get(key, _ABSENT), below)
    elif type(old) is not type(new) or old != new:
        yield f"{path}: {_short(old)} → {_short(new)}"


def _short(value: Any) -> str:
    text = value if value == _ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."


def _refuse_foreign(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise RunConflict(f"{folder}: is a file; choose another run id")
    if (folder / "frozen_strategy.json").exists() and not _has_events(folder):
        raise RunConflict(
            f"{folder / 'events.jsonl'}: missing or empty in a finished run; "
            "restore it from a copy or choose another run id"
        )
    if (folder / "settings.yaml").exists() or not folder.exists():
        return
    # a start killed before its settings were written leaves nothing but these
    found = [
        p.name for p in folder.iterdir() if p.name not in (_LOCK, _HOLDER) and p.suffix != ".aside"
    ]
    if found:
        raise RunConflict(f"{folder}: holds {found[0]} but no settings.yaml; choose another run id")


def _has_events(folder: Path) -> bool:
    journal = folder / "events.jsonl"
    return journal.is_file() and journal.stat().st_size > 0


def _refuse_changes(folder: Path, wanted: dict[str, Any]) -> None:
    path = folder / "settings.yaml"
    if not path.exists():
        return
    try:
        recorded = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, ValueError, RecursionError, IsADirectoryError):
        raise RunConflict(f"{path}: damaged; restore it or choose another run id") from None
    changed = list(differences(recorded, wanted))
    if changed:
        more = len(changed) - _SHOWN_DIFFERENCES
        tail = f"; and {more} more" if more > 0 else ""
        shown = "; ".join(changed[:_SHOWN_DIFFERENCES])
        raise RunConflict(
            f"{folder}: started with other inputs: {shown}{tail}; "
            "use the old inputs to resume, or another run id"
        )


def _take_lease(folder: Path) -> FileLock:
    # released from whichever thread closes the store, hence not thread-local
    lease = FileLock(folder / _LOCK, thread_local=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lease.acquire(timeout=0)
    except Timeout:
        raise RunConflict(
            f"{folder}: in use by {_holder(folder)}; wait for it or stop it"
        ) from None
    except OSError as error:
        raise cannot_write(folder, error) from error
    try:
        write_atomic(folder / _HOLDER, as_json({"pid": os.getpid(), "host": socket.gethostname()}))
    except BaseException:
        lease.release()
        raise
    return lease


def _holder(folder: Path) -> str:
    try:
        holder = json.loads((folder / _HOLDER).read_text())
        return f"process {holder['pid']} on {holder['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
