from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evolution.edits import Edit, Proposal, apply_edits, edit_key, edit_of, refuse_repeat
from rsi.budget import Caps
from rsi.errors import StrategyError
from rsi.strategy import BOUNDS, MAX_LESSONS, TEXT_BOUNDS, Strategy

SEED = Strategy()


def proposal(*edits: tuple[str, object, object], lesson: str = "") -> Proposal:
    return Proposal.model_validate(
        {"edits": [{"field": f, "from": a, "to": b} for f, a, b in edits], "lesson": lesson}
    )


def test_an_edit_changes_its_field_and_nothing_else() -> None:
    child = apply_edits(SEED, proposal(("agentSteps", 10, 15)))
    assert child == SEED.updated(agent_steps=15)


def test_both_spellings_of_a_field_name_are_read() -> None:
    assert apply_edits(SEED, proposal(("agent_steps", 10, 11))).agent_steps == 11


def test_lessons_and_guidance_can_be_edited() -> None:
    child = apply_edits(
        SEED, proposal(("lessons", [], ["Be exact."]), ("reviewGuidance", "", "Quote."))
    )
    assert (child.lessons, child.review_guidance) == (("Be exact.",), "Quote.")


@pytest.mark.parametrize("name", [*Caps.model_fields, "K", "agents", "temperature", "model"])
def test_nothing_outside_the_strategy_can_be_named(name: str) -> None:
    with pytest.raises(StrategyError, match="not a strategy field"):
        apply_edits(SEED, proposal((name, 1, 2)))


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_bounds_are_inclusive_and_hold_on_both_sides(name: str) -> None:
    lower, upper = BOUNDS[name]
    current = getattr(SEED, name)
    for value in {lower, upper} - {current}:
        assert getattr(apply_edits(SEED, proposal((name, current, value))), name) == value
    for value in (lower - 1, upper + 1):
        with pytest.raises(StrategyError, match=f"allowed {lower} to {upper}"):
            apply_edits(SEED, proposal((name, current, value)))


@pytest.mark.parametrize("name", sorted(TEXT_BOUNDS))
def test_texts_have_a_longest_length(name: str) -> None:
    longest = "x" * TEXT_BOUNDS[name]
    assert getattr(apply_edits(SEED, proposal((name, "", longest))), name) == longest
    with pytest.raises(StrategyError):
        apply_edits(SEED, proposal((name, "", longest + "x")))


def test_too_many_lessons_are_refused() -> None:
    with pytest.raises(StrategyError):
        apply_edits(SEED, proposal(("lessons", [], ["be exact"] * (MAX_LESSONS + 1))))


def test_from_must_be_the_current_value() -> None:
    with pytest.raises(StrategyError, match="current value 10"):
        apply_edits(SEED, proposal(("agentSteps", 11, 15)))


def test_an_edit_must_change_something() -> None:
    with pytest.raises(StrategyError, match="changes nothing"):
        apply_edits(SEED, proposal(("agentSteps", 10, 10)))


def test_a_field_is_edited_once_in_whatever_spelling() -> None:
    with pytest.raises(StrategyError, match="edited twice"):
        apply_edits(SEED, proposal(("agentSteps", 10, 15), ("agent_steps", 10, 12)))


def test_a_proposal_has_an_edit() -> None:
    with pytest.raises(ValidationError):
        Proposal(edits=())


@pytest.mark.parametrize("value", [True, 15.0, "15", None, {"a": 1}])
def test_a_number_is_given_as_an_integer(value: object) -> None:
    with pytest.raises((ValidationError, StrategyError)):
        apply_edits(SEED, proposal(("agentSteps", 10, value)))


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "\x1b[2J", "a\u202eb"])
def test_texts_hold_only_what_can_be_printed(text: str) -> None:
    with pytest.raises(ValidationError):
        proposal(("reviewGuidance", "", text))


@pytest.mark.parametrize(
    "text", ["see task-7", "TASK-7: be exact", "(task-7)", "in task-7.", "task-7"]
)
def test_texts_name_no_task_of_the_evidence(text: str) -> None:
    for edit in (proposal(("lessons", [], [text])), proposal(("reviewGuidance", "", text))):
        with pytest.raises(StrategyError, match="names a task"):
            apply_edits(SEED, edit, ["other", "task-7"])
    with pytest.raises(StrategyError, match="names a task"):
        apply_edits(SEED, proposal(("agentSteps", 10, 15), lesson=text), ["task-7"])


def test_a_longer_word_that_holds_a_task_id_is_no_task() -> None:
    text = "task-77 and mytask-7"
    assert apply_edits(SEED, proposal(("reviewGuidance", "", text)), ["task-7"])


def test_tried_strategies_and_rejected_edits_are_refused() -> None:
    wanted = proposal(("agentSteps", 10, 15), ("maxRounds", 1, 2))
    child = apply_edits(SEED, wanted)
    refuse_repeat(child, wanted, (), ())
    with pytest.raises(StrategyError, match="tried before"):
        refuse_repeat(child, wanted, {child.strategy_id}, ())
    turned = proposal(("max_rounds", 1, 2), ("agent_steps", 10, 15))
    with pytest.raises(StrategyError, match="rejected before"):
        refuse_repeat(child, wanted, (), {edit_key(turned.edits)})
    assert edit_key(proposal(("agentSteps", 10, 15)).edits) != edit_key(wanted.edits)


def test_an_edit_made_from_a_strategy_survives_json() -> None:
    edit = edit_of(SEED, "context_tokens", 9_000, "why")
    assert edit.to_json() == {"field": "contextTokens", "from": 6_000, "to": 9_000, "why": "why"}
    assert Edit.model_validate(edit.to_json()) == edit


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
EDIT = st.fixed_dictionaries(
    {
        "field": st.sampled_from([*Strategy.model_fields, "modelCalls", "agentSteps"]) | st.text(),
        "from": st.sampled_from([10, 1, 3, 6_000, 2_000, 512, 20, "", []]) | ANY,
        "to": st.integers(-10, 40_000) | ANY,
    }
)


@given(st.fixed_dictionaries({"edits": st.lists(EDIT, max_size=4)}) | ANY)
def test_whatever_is_proposed_the_strategy_stays_in_bounds_or_unchanged(value: object) -> None:
    try:
        child = apply_edits(SEED, Proposal.model_validate(value))
    except (ValidationError, StrategyError):
        return
    assert Strategy.model_validate(child.to_json()) == child != SEED
    for name, (lower, upper) in BOUNDS.items():
        assert lower <= getattr(child, name) <= upper
