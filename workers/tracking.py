"""Events as experiment runs: what a tracking server should show, without the server.

One sheet for the training and one for each candidate. Feeding the same events gives the same
sheets, with the journal's times, so that writing them twice changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evolution.candidate import SEED_ID
from rsi.digest import digest_of
from rsi.prism.outcome import Outcome
from workers.files import as_json
from workers.journal import Event
from workers.projections import lineage_of
from workers.tracking_text import COLUMNS, diagnosis_of, leaves_of, numbers_of, row_of, scores_of

TRAINING = ""
_COMPARED = ("rar", "baselineRar", "difference", "gains", "losses", "tasks", "pValue")
_MAX_NUMBERS = 200


@dataclass(frozen=True, slots=True)
class Point:
    """One metric value at a step and a time in milliseconds."""

    key: str
    value: float
    time_ms: int
    step: int


@dataclass
class Sheet:
    """One experiment run and what is not yet written of it; `status` None means no news."""

    key: str
    name: str
    started_ms: int
    tags: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    artifacts: dict[str, str] = field(default_factory=dict)
    status: str | None = "RUNNING"
    ended_ms: int = 0

    @property
    def dirty(self) -> bool:
        return bool(self.tags or self.params or self.points or self.artifacts or self.status)

    def written(self) -> None:
        """Forget what has been written."""
        self.tags, self.params, self.points, self.artifacts = {}, {}, [], {}
        self.status = None

    def note(self, event: Event, step: int, values: Mapping[str, Any], prefix: str = "") -> None:
        """Add metrics from the numbers among `values`; the rest is left out."""
        time_ms = round(event.time * 1000)
        for name, value in list(numbers_of(values))[:_MAX_NUMBERS]:
            self.points.append(Point(prefix + name, value, time_ms, step))

    def end(self, status: str, time_ms: int) -> None:
        self.status, self.ended_ms = status, time_ms


@dataclass
class Projection:
    """The sheets of one run directory, kept up to date by `feed`."""

    run_id: str
    sheets: dict[str, Sheet] = field(default_factory=dict)
    run_key: str = ""
    finished: bool = False
    splits: dict[str, str] = field(default_factory=dict)
    _events: list[Event] = field(default_factory=list)
    _repetitions: dict[str, str] = field(default_factory=dict)
    _rows: dict[str, list[list[Any]]] = field(default_factory=lambda: defaultdict(list))
    _tallies: dict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    _totals: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _owner: dict[str, str] = field(default_factory=dict)

    def feed(self, event: Event) -> None:
        """Take one event in; kinds that are unknown here are passed over."""
        if not self.sheets:
            self._begin(event)
        project: Callable[[Event], None] | None = getattr(self, f"_on_{event.kind}", None)
        if project is not None:
            project(event)

    def interrupt(self, time_ms: int) -> None:
        """Mark what has not ended as killed."""
        for sheet in self.sheets.values():
            if not sheet.ended_ms:
                sheet.end("KILLED", time_ms)

    def _begin(self, event: Event) -> None:
        started_ms = round(event.time * 1000)
        # the same run id in another folder, or started anew, is another training
        self.run_key = f"{self.run_id}-{digest_of([self.run_id, started_ms])[:12]}"
        command = event.data.get("inputs", {}).get("command", "train")
        kind = "evaluation" if command == "evaluate" else "training"
        self.sheets[TRAINING] = Sheet(
            TRAINING,
            self.run_id,
            started_ms,
            tags={"rsi.kind": kind, "rsi.run_id": self.run_id},
        )

    def _on_run_started(self, event: Event) -> None:
        inputs = event.data.get("inputs", {})
        self.sheets[TRAINING].params.update(leaves_of(inputs))
        benchmark = inputs.get("play", {}).get("benchmark", {})
        splits = benchmark.get("splitDigests", inputs.get("splits", {}))
        self.splits = {str(name): str(digest) for name, digest in splits.items()}

    def _on_dispatched(self, event: Event) -> None:
        self._repetitions[event.key] = str(event.data.get("repetition", ""))

    def _on_attempt(self, event: Event) -> None:
        self._totals["failed_attempts"] += 1
        self._totals["tokens"] += event.data.get("charged", {}).get("tokens", 0)
        self._totals["usd"] += event.data.get("charged", {}).get("usd", 0)

    def _on_rollout(self, event: Event) -> None:
        strategy_id = str(event.data.get("strategyId"))
        repetition = self._repetitions.get(event.key, "")
        found = event.data.get("outcome")
        outcome = Outcome.model_validate(found) if found else None
        row = row_of(event.data, outcome, repetition)
        self._rows[strategy_id].append(row)
        self._totals["rollouts"] += 1
        if outcome is not None and outcome.complete:
            self._tallies[(strategy_id, repetition)].append(outcome.s)
        if not event.data.get("failure"):
            self._totals["tokens"] += row[COLUMNS.index("tokens")]
            self._totals["usd"] += row[COLUMNS.index("usd")]

    def _on_candidate(self, event: Event) -> None:
        told = event.data
        parents = [str(parent) for parent in told.get("parentIds", ())]
        strategy = told.get("strategy", {})
        strategy_id = str(told.get("strategyId", ""))
        self._events.append(event)
        self._owner.setdefault(strategy_id, event.key)
        self.sheets[event.key] = Sheet(
            event.key,
            f"g{told.get('generation', 0)}/{event.key}",
            round(event.time * 1000),
            tags={
                "rsi.kind": "candidate",
                "rsi.candidate_id": event.key,
                "rsi.strategy_id": strategy_id,
                "rsi.parent_ids": ",".join(parents),
                "rsi.proposer": str(told.get("proposer", "")),
                "rsi.generation": str(told.get("generation", 0)),
                "rsi.decision": "none",
            },
            params=dict(leaves_of(strategy)),
            artifacts={
                "strategy.json": as_json(strategy),
                "diff.json": as_json(self._difference(parents, strategy)),
                "diagnosis.md": diagnosis_of(told),
            },
        )

    def _difference(self, parents: Sequence[str], strategy: Mapping[str, Any]) -> dict[str, Any]:
        """Every field that differs from each parent, by parent id."""
        known = {e.key: e.data.get("strategy", {}) for e in self._events if e.kind == "candidate"}
        return {
            parent: {
                name: {"from": known[parent].get(name), "to": value}
                for name, value in strategy.items()
                if known[parent].get(name) != value
            }
            for parent in parents
            if parent in known
        }

    def _on_comparison(self, event: Event) -> None:
        sheet = self.sheets.get(str(event.data.get("candidateId")))
        if sheet is None:
            return
        self._events.append(event)
        step = int(event.data.get("generation", 0))
        sheet.note(event, step, {name: event.data.get(name) for name in _COMPARED})
        owner = next((s for s, c in self._owner.items() if c == sheet.key), "")
        solved = self._tallies.get((owner, str(event.data.get("repetition"))))
        if solved:
            sheet.note(event, step, {"jsf": sum(solved) / len(solved)})

    def _on_decision(self, event: Event) -> None:
        self._events.append(event)
        sheet = self.sheets.get(str(event.data.get("candidateId")))
        if sheet is None:
            return
        promoted = bool(event.data.get("promoted"))
        sheet.tags["rsi.decision"] = "promoted" if promoted else "declined"
        sheet.tags["rsi.decision_reason"] = str(event.data.get("reason", ""))
        step = int(event.data.get("generation", 0))
        sheet.note(event, step, {k: event.data.get(k) for k in ("pValue", "alpha")}, "decision_")
        self._tabulate(sheet.key)
        sheet.end("FINISHED", round(event.time * 1000))

    def _on_lesson(self, event: Event) -> None:
        if event.key in self.sheets:
            self.sheets[event.key].artifacts["regression.json"] = as_json(event.data)

    def _on_generation(self, event: Event) -> None:
        values = {**event.data, **{f"spent_{k}": v for k, v in self._totals.items()}}
        values["promotions"] = len(event.data.get("promotedIds", ()))
        self.sheets[TRAINING].note(event, int(event.data.get("number", 0)), values)

    def _on_selection(self, event: Event) -> None:
        self._events.append(event)
        self.sheets[TRAINING].artifacts["selection.json"] = as_json(event.data)
        for standing in event.data.get("finalists", ()):
            sheet = self.sheets.get(str(standing.get("candidateId")))
            if sheet is not None:
                sheet.note(event, 0, standing, "selection_")

    def _on_winner(self, event: Event) -> None:
        self._events.append(event)
        winner = str(event.data.get("candidateId", ""))
        self.sheets[TRAINING].tags["rsi.winner"] = winner
        self.sheets[TRAINING].artifacts["winner.json"] = as_json(event.data)
        if winner in self.sheets:
            self.sheets[winner].tags["rsi.winner"] = "true"

    def _on_release(self, event: Event) -> None:
        self._events.append(event)
        training = self.sheets[TRAINING]
        training.note(event, 0, event.data.get("gain", {}), "test.gain.")
        training.artifacts["release.json"] = as_json(event.data)
        for side, candidate_id in (("winner", self._winner()), ("seed", SEED_ID)):
            scores = scores_of(event.data.get(side) or {})
            training.note(event, 0, scores, f"test.{side}.")
            if candidate_id in self.sheets:
                self.sheets[candidate_id].note(event, 0, scores, "test.")

    def _winner(self) -> str:
        named = [str(e.data.get("candidateId", "")) for e in self._events if e.kind == "winner"]
        return named[-1] if named else ""

    def _on_frozen(self, event: Event) -> None:
        self._events.append(event)
        self.sheets[TRAINING].tags["rsi.frozen"] = str(event.data.get("digest", event.key))
        if "frozen" in event.data:
            frozen = event.data["frozen"]
            self.sheets[TRAINING].artifacts["frozen_strategy.json"] = as_json(frozen)

    def _on_run_finished(self, event: Event) -> None:
        self.finished = True
        ended_ms = round(event.time * 1000)
        training = self.sheets[TRAINING]
        training.note(event, 0, event.data, "final.")
        training.artifacts["summary.json"] = as_json(event.data)
        training.artifacts["lineage.json"] = as_json(lineage_of(self._events))
        for sheet in self.sheets.values():
            self._tabulate(sheet.key)
            if not sheet.ended_ms:
                sheet.end("FINISHED", ended_ms)

    def _tabulate(self, candidate_id: str) -> None:
        """Put the outcomes of a candidate's strategy beside it, in MLflow's table format."""
        strategies = [s for s, c in self._owner.items() if c == candidate_id]
        rows = [row for strategy_id in strategies for row in self._rows.get(strategy_id, ())]
        if rows:
            sheet = self.sheets[candidate_id]
            sheet.artifacts["outcomes.json"] = as_json({"columns": list(COLUMNS), "data": rows})
            sheet.tags["mlflow.loggedArtifacts"] = '[{"path": "outcomes.json", "type": "table"}]'
