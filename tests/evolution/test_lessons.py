from __future__ import annotations

from evolution.edits import edit_of
from evolution.lessons import (
    MAX_ACTIVE,
    MAX_ACTIVE_CHARS,
    Lesson,
    Regression,
    active,
    learn,
    lesson_event,
    regression_map,
)
from rsi.strategy import Strategy
from tests.evolution.worlds import candidate

TEACHER = candidate(lesson="More steps help.", edits=(edit_of(Strategy(), "agent_steps", 15, ""),))


def lesson(statement: str, support: int, against: int = 0) -> Lesson:
    return Lesson(
        statement=statement,
        generation=1,
        candidate_id="g1-c1",
        supported_by=tuple(f"t{n}" for n in range(support)),
        contradicted_by=tuple(f"u{n}" for n in range(against)),
    )


def test_tasks_are_sorted_by_what_became_of_them() -> None:
    parent = {"a": 0, "b": 1, "c": 0, "d": 1, "e": None, "f": 0}
    child = {"a": 1, "b": 0, "c": 0, "d": 1, "e": 1, "f": None}
    assert regression_map(parent, child) == Regression(
        fixed=("a",), regressed=("b",), still_failing=("c",), still_passing=("d",)
    )


def test_a_lesson_is_learnt_only_when_more_is_fixed_than_broken() -> None:
    assert learn((), TEACHER, Regression(fixed=("a",), regressed=("b",))) == ()
    (learnt,) = learn((), TEACHER, Regression(fixed=("a", "c"), regressed=("b",)))
    assert learnt.statement == "More steps help."
    assert learnt.scope == ("agent_steps",)
    assert (learnt.supported_by, learnt.contradicted_by) == (("a", "c"), ("b",))
    assert (learnt.generation, learnt.candidate_id) == (1, "g1-c1")


def test_a_child_without_a_lesson_teaches_nothing() -> None:
    assert learn((), candidate(), Regression(fixed=("a",))) == ()


def test_later_evidence_against_a_lesson_retires_it_but_keeps_it_on_record() -> None:
    known = learn((), TEACHER, Regression(fixed=("a", "b")))
    assert active(known) == known
    known = learn(known, TEACHER, Regression(fixed=("a",), regressed=("c",)))
    assert active(known) == known
    known = learn(known, TEACHER, Regression(regressed=("d",)))
    assert known[0].retired
    assert known[0].supported_by == ("a", "b")
    assert active(known) == ()


def test_active_lessons_are_the_best_supported_within_the_text_budget() -> None:
    many = [lesson(f"lesson {n}", n + 1) for n in range(MAX_ACTIVE + 3)]
    shown = active(many)
    assert len(shown) == MAX_ACTIVE
    assert shown[0].statement == f"lesson {MAX_ACTIVE + 2}"
    long = [lesson(f"{n}" * 300, 2) for n in range(10)]
    assert sum(len(x.statement) for x in active(long)) == MAX_ACTIVE_CHARS


def test_the_event_holds_the_regression_map_and_the_lesson_as_it_stands() -> None:
    regression = Regression(fixed=("a",))
    event = lesson_event(TEACHER, regression, {TEACHER.lesson: lesson(TEACHER.lesson, 1, 1)})
    assert event["candidateId"] == "g1-c1"
    assert event["regression"]["fixed"] == ["a"]
    assert event["retired"] is True
    assert lesson_event(TEACHER, regression, {})["lesson"] is None
