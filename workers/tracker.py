"""MLflow as a view on the journal: it follows, it may fall behind, it never holds a run up."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from rsi.errors import InfrastructureError
from workers.journal import Event
from workers.quiet import quiet
from workers.store import RunStore
from workers.tracking import TRAINING, Projection, Sheet
from workers.tracking_text import first_line, without_password

log = logging.getLogger(__name__)

REGISTERED = "testhelix-strategy"
ALIAS = "frozen"
_POLL_S = 0.5
_RETRY_S = (1.0, 5.0, 20.0, 60.0)
_BATCH = 100
_METRIC_BATCH = 1_000
_DIGEST_CHARS = 36
T = TypeVar("T")


class MlflowTracker:
    """Follows a run's journal in a thread of its own and writes what it says to MLflow.

    A server that fails is one warning; the thread tries again, and `rebuild` can do all of it
    later. The thread ends by `stop`, or when the journal is closed.
    """

    def __init__(self, uri: str, experiment: str) -> None:
        self.uri = uri
        self._experiment = experiment
        self._store: RunStore | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._news = threading.Condition()
        self._written = 0
        self._failures = 0
        self._warned = False

    def start(self, store: RunStore) -> None:
        """Begin to follow a run; returns at once."""
        self._store = store
        self._thread = threading.Thread(
            target=self._follow, args=(store,), name="mlflow", daemon=True
        )
        self._thread.start()

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until all events so far are written; False when a try fails or time runs out."""
        if self._store is None:
            return True
        wanted = len(self._store.events())
        with self._news:
            failures = self._failures
            self._news.wait_for(
                lambda: self._written >= wanted or self._failures > failures, timeout=timeout_s
            )
            return self._written >= wanted

    def stop(self, timeout_s: float = 10.0) -> bool:
        """Write what is left and end the thread; False when that fails or takes longer.

        A run whose journal has no `run_finished` is shown as killed.
        """
        if self._store is None or self._thread is None:
            return True
        self._stopping.set()
        self._thread.join(timeout_s)
        done = not self._thread.is_alive() and self._written >= len(self._store.events())
        if not done:
            self._warn("is too slow")
        return done

    def _follow(self, store: RunStore) -> None:
        projection = Projection(store.run_id)
        server: _Server | None = None
        seen, retry_at, last = 0, 0.0, False
        while not last:
            last = self._stopping.is_set() or store.journal.closed
            events = store.journal.since(seen, wait_s=0.0 if last else _POLL_S)
            seen += len(events)
            for event in events:
                projection.feed(event)
            if last and not projection.finished:
                projection.interrupt(round(time.time() * 1000))
            if time.monotonic() < retry_at and not last:
                # events do not wait for the server, so neither may this loop spin
                self._stopping.wait(_POLL_S)
                continue
            try:
                server = server or _Server(self.uri, self._experiment)
                server.write(projection)
            except Exception as error:
                # MLflow raises errors of many libraries; none of them may stop a run
                retry_at = time.monotonic() + _RETRY_S[min(self._failures, len(_RETRY_S) - 1)]
                self._failed(error)
            else:
                self._succeeded(seen)
        if server is not None:
            server.close()

    def _succeeded(self, seen: int) -> None:
        with self._news:
            self._written, self._failures, self._warned = seen, 0, False
            self._news.notify_all()

    def _failed(self, error: Exception) -> None:
        self._warn(f"does not take events ({first_line(error)})")
        with self._news:
            self._failures += 1
            self._news.notify_all()

    def _warn(self, trouble: str) -> None:
        """Say once per outage that MLflow falls behind."""
        if self._warned:
            return
        self._warned = True
        run_id = self._store.run_id if self._store else ""
        log.warning(
            "MLflow at %s %s; the run goes on, and what is missing there at its end is written by "
            "`python -m rsi.report rebuild run=%s`",
            without_password(self.uri),
            trouble,
            run_id,
        )


def rebuild(events: Iterable[Event], uri: str, experiment: str, run_id: str) -> None:
    """Write a whole run to MLflow, again or for the first time.

    Raises InfrastructureError when MLflow does not take it.
    """
    projection = Projection(run_id)
    last = 0.0
    for event in events:
        projection.feed(event)
        last = event.time
    if not projection.finished:
        projection.interrupt(round(last * 1000))
    try:
        server = _Server(uri, experiment)
        server.write(projection)
    except Exception as error:
        raise InfrastructureError(
            f"MLflow at {without_password(uri)} does not take events: {first_line(error)}"
        ) from error
    server.close()


class _Server:
    """One experiment on one MLflow server or database; every write may be repeated."""

    def __init__(self, uri: str, experiment: str) -> None:
        quiet()
        # seconds to import, and not needed unless tracking is on
        from mlflow import MlflowClient

        folder = _folder_of(uri)
        # two processes that create one database at once break each other
        lock = FileLock(folder / "mlflow.lock") if folder else contextlib.nullcontext()
        with lock:
            self._client: Any = MlflowClient(tracking_uri=uri, registry_uri=uri)
            found = self._client.get_experiment_by_name(experiment)
            if found is None:
                root = (folder / "mlartifacts").as_uri() if folder else None
                self._experiment_id = self._client.create_experiment(experiment, root)
            else:
                self._experiment_id = found.experiment_id
        self._run_ids: dict[str, str] = {}
        self._looked = False

    def write(self, projection: Projection) -> None:
        """Write all that is new in a projection, the training's run first."""
        if projection.sheets and not self._looked:
            self._run_ids = self._find(projection.run_key)
            self._looked = True
        for sheet in projection.sheets.values():
            if sheet.dirty:
                self._write(sheet, projection)
                sheet.written()

    def close(self) -> None:
        """Give the database connections back."""
        for client in (self._client._tracking_client, self._client._get_registry_client()):
            engine = getattr(client.store, "engine", None)
            if engine is not None:
                engine.dispose()

    def _find(self, run_key: str) -> dict[str, str]:
        """Runs that an earlier process wrote, by candidate id; the training's has none."""
        found: dict[str, str] = {}
        token = None
        while True:
            page = self._client.search_runs(
                [self._experiment_id],
                f"tags.`rsi.run_key` = '{run_key}'",
                max_results=_METRIC_BATCH,
                page_token=token,
            )
            for run in page:
                found[run.data.tags.get("rsi.candidate_id", TRAINING)] = run.info.run_id
            token = page.token
            if not token:
                return found

    def _write(self, sheet: Sheet, projection: Projection) -> None:
        from mlflow.entities import Metric, Param, RunTag

        run_id = self._run_of(sheet, projection)
        metrics = [Metric(p.key, p.value, p.time_ms, p.step) for p in sheet.points]
        params = [Param(name, value) for name, value in sheet.params.items()]
        tags = [RunTag(name, value) for name, value in sheet.tags.items()]
        for some in _parts(params, _BATCH):
            self._client.log_batch(run_id, params=some)
        for some in _parts(tags, _BATCH):
            self._client.log_batch(run_id, tags=some)
        for some in _parts(metrics, _METRIC_BATCH):
            self._client.log_batch(run_id, metrics=some)
        for name, text in sheet.artifacts.items():
            self._client.log_text(run_id, text, name)
        if "rsi.frozen" in sheet.tags:
            self._register(run_id, projection.run_key, sheet.tags["rsi.frozen"])
        if sheet.key == TRAINING and projection.splits:
            self._log_splits(run_id, projection.splits)
        if sheet.status == "RUNNING":
            self._client.update_run(run_id, status="RUNNING")
        elif sheet.status is not None:
            self._client.set_terminated(run_id, sheet.status, sheet.ended_ms)

    def _run_of(self, sheet: Sheet, projection: Projection) -> str:
        known = self._run_ids.get(sheet.key)
        if known is not None:
            return known
        tags = {**sheet.tags, "rsi.run_key": projection.run_key}
        if sheet.key != TRAINING:
            tags["mlflow.parentRunId"] = self._run_ids[TRAINING]
        run = self._client.create_run(self._experiment_id, sheet.started_ms, tags, sheet.name)
        run_id: str = run.info.run_id
        self._run_ids[sheet.key] = run_id
        return run_id

    def _log_splits(self, run_id: str, splits: Mapping[str, str]) -> None:
        """Show the task splits as datasets, once; MLflow keeps 36 characters of a digest."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        if self._client.get_run(run_id).inputs.dataset_inputs:
            return
        inputs = [
            DatasetInput(
                Dataset(name, digest[:_DIGEST_CHARS], "local", "{}"),
                [InputTag("mlflow.data.context", name)],
            )
            for name, digest in splits.items()
        ]
        self._client.log_inputs(run_id, inputs)

    def _register(self, run_id: str, run_key: str, digest: str) -> None:
        """Give the frozen winner a version in the registry, once; the alias moves to it."""
        client = self._client
        if not client.search_registered_models(f"name = '{REGISTERED}'"):
            client.create_registered_model(REGISTERED)
        if client.search_model_versions(f"run_id = '{run_id}'"):
            return
        source = client.get_run(run_id).info.artifact_uri
        version = client.create_model_version(
            REGISTERED, source, run_id, tags={"rsi.run_key": run_key, "rsi.frozen": digest}
        )
        client.set_registered_model_alias(REGISTERED, ALIAS, version.version)


def _parts(items: Sequence[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def _folder_of(uri: str) -> Path | None:
    """The folder of a sqlite database, made if need be; None for a server."""
    if not uri.startswith("sqlite:///"):
        return None
    folder = Path(uri.removeprefix("sqlite:///")).absolute().parent
    folder.mkdir(parents=True, exist_ok=True)
    return folder
