"""Lessons: what a comparison taught, with the tasks that speak for it and against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from evolution.candidate import Candidate
from evolution.edits import FIELDS
from evolution.statistics import Outcomes
from rsi.strategy import MAX_LESSON_CHARS
from rsi.wire import Record

MAX_ACTIVE = 12
MAX_ACTIVE_CHARS = 2_400


class Regression(Record):
    """Tasks by what became of them from the parent to the child, each list sorted."""

    fixed: tuple[str, ...] = ()
    regressed: tuple[str, ...] = ()
    still_failing: tuple[str, ...] = ()
    still_passing: tuple[str, ...] = ()


class Lesson(Record):
    """A general statement, the fields it is about, and its evidence (task ids, each once).

    Retired when as many tasks speak against it as for it: it is kept on record, shown to nobody.
    """

    statement: str = Field(min_length=1, max_length=MAX_LESSON_CHARS)
    scope: tuple[str, ...] = Field((), max_length=len(FIELDS))
    generation: int = Field(ge=1)
    candidate_id: str
    supported_by: tuple[str, ...] = ()
    contradicted_by: tuple[str, ...] = ()

    @property
    def balance(self) -> int:
        return len(self.supported_by) - len(self.contradicted_by)

    @property
    def retired(self) -> bool:
        return self.balance <= 0


def regression_map(parent: Outcomes, child: Outcomes) -> Regression:
    """Sort tasks that both sides finished into fixed, regressed, still failing, still passing."""
    found: dict[tuple[int, int], list[str]] = {}
    for task_id in sorted(set(parent) & set(child)):
        before, after = parent[task_id], child[task_id]
        if before is not None and after is not None:
            found.setdefault((before, after), []).append(task_id)
    fixed, regressed, failing, passing = (
        tuple(found.get(key, ())) for key in ((0, 1), (1, 0), (0, 0), (1, 1))
    )
    return Regression(
        fixed=fixed, regressed=regressed, still_failing=failing, still_passing=passing
    )


def learn(
    lessons: Sequence[Lesson], candidate: Candidate, regression: Regression
) -> tuple[Lesson, ...]:
    """Add a child's evidence to its lesson; a new lesson needs more tasks fixed than regressed."""
    known = {lesson.statement: lesson for lesson in lessons}
    if not candidate.lesson:
        return tuple(lessons)
    old = known.get(candidate.lesson)
    if old is None and len(regression.fixed) <= len(regression.regressed):
        return tuple(lessons)
    lesson = old or Lesson(
        statement=candidate.lesson,
        scope=tuple(sorted(edit.name for edit in candidate.edits)),
        generation=candidate.generation,
        candidate_id=candidate.candidate_id,
    )
    known[lesson.statement] = lesson.updated(
        supported_by=tuple(dict.fromkeys((*lesson.supported_by, *regression.fixed))),
        contradicted_by=tuple(dict.fromkeys((*lesson.contradicted_by, *regression.regressed))),
    )
    return tuple(known.values())


def active(lessons: Sequence[Lesson]) -> tuple[Lesson, ...]:
    """The lessons that are handed on: not retired, best supported first, within the text budget."""
    kept: list[Lesson] = []
    room = MAX_ACTIVE_CHARS
    for lesson in sorted(lessons, key=lambda item: -item.balance):
        if lesson.retired or len(kept) == MAX_ACTIVE or len(lesson.statement) > room:
            continue
        kept.append(lesson)
        room -= len(lesson.statement)
    return tuple(kept)


def lesson_event(
    candidate: Candidate, regression: Regression, lessons: Mapping[str, Lesson]
) -> dict[str, Any]:
    """The data of a `lesson` event: the regression map and the child's lesson as it now stands."""
    lesson = lessons.get(candidate.lesson)
    return {
        "candidateId": candidate.candidate_id,
        "generation": candidate.generation,
        "regression": regression.to_json(),
        "lesson": lesson.to_json() if lesson else None,
        "retired": lesson.retired if lesson else None,
    }
