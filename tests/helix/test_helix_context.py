"""What is sent when the conversation is longer than the strategy allows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rsi.helix.context import Entry, Part, fit, shortened
from rsi.helix.wording import LEFT_OUT
from rsi.ports import Message, ToolCall

LONG = 100


def entries(*parts: Part) -> list[Entry]:
    role = {"fixed": "user", "turn": "user", "assistant": "assistant", "tool": "tool"}
    return [
        Entry(p, Message.model_validate({"role": role[p], "content": f"{i}{p}".ljust(LONG, ".")}))
        for i, p in enumerate(parts)
    ]


def size(messages: tuple[Message, ...]) -> int:
    return sum(len(m.content) for m in messages)


def gone(found: tuple[Message, ...]) -> list[int]:
    return [i for i, message in enumerate(found) if message.content == LEFT_OUT]


TALK = entries(
    "fixed", "fixed", "assistant", "tool", "turn", "assistant", "tool", "turn", "assistant", "tool"
)
SAVED = LONG - len(LEFT_OUT)


def test_a_conversation_that_fits_is_sent_whole() -> None:
    found, tokens, elided = fit(TALK, size, 1_000)
    assert found == tuple(entry.message for entry in TALK)
    assert (tokens, elided) == (1_000, False)


def test_no_more_is_left_out_than_needed_in_a_fixed_order() -> None:
    order = [3, 6, 2, 5, 4, 9, 8]
    for count in range(1, len(order) + 1):
        found, tokens, elided = fit(TALK, size, 1_000 - SAVED * count)
        assert gone(found) == sorted(order[:count])
        assert (tokens, elided) == (1_000 - SAVED * count, True)
        assert len(gone(fit(TALK, size, 1_000 - SAVED * (count - 1) - 1)[0])) == count


def test_requirement_and_last_brief_are_sent_however_small_the_context() -> None:
    found, tokens, elided = fit(TALK, size, 1)
    assert [i for i in range(len(TALK)) if i not in gone(found)] == [0, 1, 7]
    assert tokens == size(found) > 1
    assert elided


def test_only_the_requirement_means_nothing_is_left_out() -> None:
    found, _, elided = fit(TALK[:2], size, 1)
    assert found == tuple(entry.message for entry in TALK[:2])
    assert not elided


@given(st.lists(st.sampled_from(["assistant", "tool", "turn"]), max_size=12), st.integers(1, 1_500))
def test_the_bound_holds_whenever_it_can_and_the_requirement_stays(
    parts: list[Part], most: int
) -> None:
    talk = entries("fixed", "fixed", *parts)
    found, tokens, _ = fit(talk, size, most)
    least = fit(talk, size, 1)[1]
    assert tokens == size(found) <= max(most, least)
    assert found[:2] == tuple(entry.message for entry in talk[:2])


def test_long_arguments_go_with_the_text_and_short_ones_stay() -> None:
    arguments = '{"path": "' + "a" * 60 + '", "content": "' + "x" * 61 + '"}'
    calls = (
        ToolCall(call_id="1", name="write_file", arguments=arguments),
        ToolCall(call_id="2", name="run", arguments="{broken"),
    )
    short = shortened(Message(role="assistant", content="hi", tool_calls=calls))
    assert short.content == "hi"
    assert short.tool_calls[0].arguments == (
        '{"path": "' + "a" * 60 + f'", "content": "{LEFT_OUT}"}}'
    )
    assert short.tool_calls[1].arguments == "{}"
    assert [c.call_id for c in short.tool_calls] == ["1", "2"]
