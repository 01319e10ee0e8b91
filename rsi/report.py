"""`python -m rsi.report run=ID` tells a run's lineage, decisions, spend and test figures;
`python -m rsi.report rebuild run=ID` makes lineage.json, outcomes/ and MLflow anew from events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from rsi.assembly import tracking_uri
from rsi.cli import run_command
from rsi.closing import gain_line, print_scores
from rsi.compose import arguments, help_text, load, wants_help
from rsi.errors import SettingsError
from rsi.settings import ReportSettings
from workers.files import write_atomic
from workers.journal import Event, read_events
from workers.store import as_json, write_projections
from workers.tracker import rebuild
from workers.tracking_text import without_password


def main() -> int:
    """Run the command; returns its exit code."""
    argv = ["rebuild=true" if a == "rebuild" else a for a in arguments()]
    if wants_help(argv):
        print(help_text("rsi.report", "report", "[rebuild] "))
        return 0
    return report(load("report", ReportSettings, argv), Console())


def report(settings: ReportSettings, console: Console) -> int:
    """Print the report of a run, finished or not, and write it as report/summary.json."""
    folder = settings.runs_dir / settings.run
    journal = folder / "events.jsonl"
    if not journal.is_file():
        raise SettingsError(f"run={settings.run}: no such run in {settings.runs_dir}")
    events = list(read_events(journal))
    if settings.rebuild:
        write_projections(folder, events)
        uri = tracking_uri(settings.tracking.uri, settings.runs_dir)
        if settings.tracking.enabled:
            rebuild(events, uri, settings.tracking.experiment, settings.run)
        console.print(
            f"rebuilt from {len(events)} events: {folder / 'lineage.json'}, {without_password(uri)}"
        )
    summary = summarize(settings.run, events)
    print_report(console, summary)
    write_atomic(folder / "report" / "summary.json", as_json(summary))
    return 0


def summarize(run_id: str, events: Sequence[Event]) -> dict[str, Any]:
    """The report as JSON: a fold over the events (keys in docs/summary.md)."""
    of: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        of.setdefault(event.kind, []).append(event.data)
    rollouts = of.get("rollout", [])
    spends = [r.get("spend", {}) for r in rollouts]
    return {
        "command": "report",
        "runId": run_id,
        "finished": bool(of.get("run_finished")),
        "candidates": of.get("candidate", []),
        "comparisons": of.get("comparison", []),
        "decisions": of.get("decision", []),
        "generations": of.get("generation", []),
        "lessons": sorted({x for g in of.get("generation", [])[-1:] for x in g["lessons"]}),
        "selection": of.get("selection", []),
        "winner": next(iter(of.get("winner", [])), None),
        "release": next(iter(of.get("release", [])), None),
        "rollouts": len(rollouts),
        "infrastructureFailures": sum(bool(r.get("failure")) for r in rollouts),
        "isolation": sorted({r["isolation"] for r in rollouts}),
        "spend": {
            name: sum(s.get(name, 0) for s in spends)
            for name in ("modelCalls", "inputTokens", "outputTokens", "sandboxSeconds", "usd")
        },
    }


def print_report(console: Console, summary: Mapping[str, Any]) -> None:
    """Print lineage tree, generations, selection, test figures and spend."""
    state = "finished" if summary["finished"] else "not finished"
    isolation = ", ".join(summary["isolation"]) or "none"
    spend = summary["spend"]
    _say(
        console,
        f"run {summary['runId']} ({state}): {summary['rollouts']} rollouts, "
        f"{summary['infrastructureFailures']} lost to infrastructure, isolation {isolation}, "
        f"{spend['modelCalls']} calls, {spend['inputTokens'] + spend['outputTokens']} tokens, "
        f"{spend['usd']:.2f} USD",
    )
    console.print(lineage_tree(summary), highlight=False)
    _print_generations(console, summary["generations"])
    for lesson in summary["lessons"]:
        _say(console, f"lesson: {lesson}")
    if summary["winner"]:
        _say(console, f"winner {summary['winner']['candidateId']}: {summary['winner']['reason']}")
    tested = summary["release"]
    if tested and "seed" in tested:
        title = f"{tested['split']} split, {tested['tasks']} tasks"
        print_scores(console, title, {side: tested[side] for side in ("seed", "winner")})
        for name, gain in tested["gain"].items():
            _say(console, gain_line(name, gain))


def lineage_tree(summary: Mapping[str, Any]) -> Tree:
    """Candidates below their first parent, each with proposer, edits and decision."""
    decided = {d["candidateId"]: d for d in summary["decisions"]}
    compared = {c["candidateId"]: c for c in summary["comparisons"]}
    nodes: dict[str, Tree] = {}
    root = Tree("lineage")
    for candidate in summary["candidates"]:
        name = candidate["candidateId"]
        parents = candidate["parentIds"]
        above = nodes.get(parents[0], root) if parents else root
        nodes[name] = above.add(_candidate_line(candidate, decided.get(name), compared.get(name)))
    return root


def _candidate_line(
    candidate: Mapping[str, Any],
    decision: Mapping[str, Any] | None,
    comparison: Mapping[str, Any] | None,
) -> str:
    edits = ", ".join(
        f"{e['field']} {_short(e['from'])}→{_short(e['to'])}" for e in candidate["edits"]
    )
    parts = [f"{candidate['candidateId']} ({candidate['proposer']})", edits]
    if comparison and comparison["rar"] is not None:
        low, high = comparison["rarInterval"]["low"], comparison["rarInterval"]["high"]
        parts.append(
            f"rar {100 * comparison['rar']:.0f} % [{100 * low:.0f}, {100 * high:.0f}] "
            f"against {100 * comparison['baselineRar']:.0f} % on {comparison['tasks']} tasks"
        )
    if decision:
        parts.append("PROMOTED" if decision["promoted"] else "declined")
        parts.append(decision["reason"])
    return "; ".join(p for p in parts if p).replace("[", "\\[")


def _print_generations(console: Console, generations: Sequence[Mapping[str, Any]]) -> None:
    if not generations:
        return
    table = Table(title="generations (training figures, optimistic)")
    for column in ("generation", "incumbent", "best child", "rar", "alpha left"):
        table.add_column(column)
    for row in generations:
        rar = "n/a"
        if row["rar"] is not None and row["interval"]:
            low, high = row["interval"]["low"], row["interval"]["high"]
            rar = f"{100 * row['rar']:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
        cells = (row["number"], row["incumbentId"], row["bestId"], rar, f"{row['alphaLeft']:.4f}")
        table.add_row(*(str(cell) for cell in cells))
    console.print(table)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _say(console: Console, line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)


if __name__ == "__main__":
    run_command(main)
