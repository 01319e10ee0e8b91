"""What a reflector may see of the parent's training rollouts: bounded, and fenced as data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import Field

from rsi.budget import Caps, Spend
from rsi.prism.outcome import Kind
from rsi.records import Rollout
from rsi.trajectory import Step, Symptoms, Trajectory
from rsi.wire import Record

MAX_FAILURES = 4
MAX_SUMMARY_CHARS = 1_500
MAX_STEP_CHARS = 240
MAX_LESSONS_SHOWN = 12
JUDGED: tuple[Kind, Kind] = ("initial", "reference")


class Failure(Record):
    """One failed rollout: its taxonomy label and a bounded summary of what the agents did."""

    label: str
    summary: str = Field(max_length=MAX_SUMMARY_CHARS)


class Evidence(Record):
    """Counts over trace rollouts of one parent and a few failures.

    `symptoms` sums over rollouts, `affected` counts rollouts that show a symptom; `spend_share`
    is the mean part of each cap that was used (1.0 = all of it). `task_ids` may appear in no text.
    """

    rollouts: int = Field(ge=0)
    failed: int = Field(ge=0)
    lost: int = Field(0, ge=0)
    symptoms: Symptoms = Symptoms()
    affected: dict[str, int] = Field(default_factory=dict)
    labels: dict[str, int] = Field(default_factory=dict)
    spend_share: dict[str, float] = Field(default_factory=dict)
    failures: tuple[Failure, ...] = Field((), max_length=MAX_FAILURES)
    lessons: tuple[str, ...] = Field((), max_length=MAX_LESSONS_SHOWN)
    task_ids: tuple[str, ...] = ()


def gather(rollouts: Sequence[Rollout], caps: Caps, lessons: Iterable[str] = ()) -> Evidence:
    """Condense rollouts of the train split; those the world failed count as lost, not as failed."""
    judged = [r for r in rollouts if r.rar is not None]
    failed = [r for r in judged if not r.rar]
    symptoms = Symptoms()
    affected: Counter[str] = Counter()
    for rollout in judged:
        symptoms += rollout.symptoms
        affected.update(n for n, count in rollout.symptoms.model_dump().items() if count)
    return Evidence(
        rollouts=len(judged),
        failed=len(failed),
        lost=len(rollouts) - len(judged),
        symptoms=symptoms,
        affected=dict(sorted(affected.items())),
        labels=dict(sorted(Counter(r.label or "unlabelled" for r in failed).items())),
        spend_share=_spend_share([r.spend for r in judged], caps),
        failures=tuple(
            Failure(label=r.label or "unlabelled", summary=summary_of(r))
            for r in _varied(failed)[:MAX_FAILURES]
        ),
        lessons=tuple(lessons)[:MAX_LESSONS_SHOWN],
        task_ids=tuple(sorted({r.task_id for r in rollouts})),
    )


def summary_of(rollout: Rollout) -> str:
    """Tell a failed rollout in at most MAX_SUMMARY_CHARS: verdicts, stops, last steps, drops."""
    lines = []
    if rollout.outcome is not None:
        on_initial, on_right = (rollout.outcome.of(k)[0].state.value for k in JUDGED)
        lines.append(f"suite on the initial program: {on_initial}, on a right one: {on_right}")
    if rollout.fallback:
        lines.append(f"fallback: {_cut(rollout.fallback)}")
    lines += [f"dropped {_cut(d.what)}: {_cut(d.reason)}" for d in rollout.dropped[:3]]
    for trajectory in rollout.trajectories[:3]:
        lines += _trajectory_lines(trajectory)
    return "\n".join(lines)[:MAX_SUMMARY_CHARS]


def fence(text: str) -> str:
    """Fence text as data, with more backticks than any run of them inside."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}text\n{text}\n{ticks}"


def _varied(failed: Sequence[Rollout]) -> list[Rollout]:
    """Failures ordered so that every label shows up before any label shows up again."""
    seen: Counter[str] = Counter()
    ranked = []
    for rollout in sorted(failed, key=lambda r: r.task_id):
        ranked.append((seen[rollout.label], rollout.task_id, rollout))
        seen[rollout.label] += 1
    return [r for _, _, r in sorted(ranked, key=lambda item: item[:2])]


def _spend_share(spends: Sequence[Spend], caps: Caps) -> dict[str, float]:
    if not spends:
        return {}
    return {
        name: round(sum(getattr(s, name) for s in spends) / len(spends) / getattr(caps, name), 3)
        for name in type(caps).model_fields
    }


def _trajectory_lines(trajectory: Trajectory) -> list[str]:
    stopped = f"{len(trajectory.steps)} steps, stopped: {trajectory.stop_reason}"
    head = f"{_cut(trajectory.agent)}: {stopped}"
    if trajectory.stopped_by:
        head += f" ({_cut(trajectory.stopped_by)})"
    lines = [head]
    for number, step in list(enumerate(trajectory.steps, 1))[-2:]:
        lines.append(f"  step {number} {_step_line(step)}")
    return lines


def _step_line(step: Step) -> str:
    call = f"{step.tool} {step.arguments}" if step.tool else step.said
    return f"{step.kind}: {_cut(call)} -> {_cut(step.observation)}"


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_STEP_CHARS else flat[: MAX_STEP_CHARS - 1] + "…"
