"""Prompts and the cleaning of what models and programs print."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from rsi.helix.agent import Agent, opening_of
from rsi.helix.wording import clean, cut, fenced, prompt_digests, render
from rsi.strategy import Strategy
from tests.helix.helix_world import job
from workers.fakes import ScriptedModel


def test_every_prompt_file_has_a_digest() -> None:
    digests = prompt_digests()
    assert sorted(digests) == [
        "challenge",
        "inconsistent",
        "review",
        "review_system",
        "revise",
        "system",
        "task",
    ]
    assert len(set(digests.values())) == 7
    assert all(len(digest) == 64 for digest in digests.values())


def test_a_prompt_with_a_missing_variable_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("task", instruction="x")


def test_the_first_lines_of_briefs_are_fixed() -> None:
    listed = {
        "task": {"instruction": "x", "language": "python", "paths": ["a.py"]},
        "inconsistent": {"findings": [], "guidance": ""},
        "revise": {"complaints": [], "guidance": ""},
        "review": {"instruction": "x", "suite": "", "repair": "", "output": "", "state": "REJECT"},
        "challenge": {"instruction": "x", "call": "f()", "results": []},
    }
    first = {name: render(name, **values).split("\n")[0] for name, values in listed.items()}
    assert first == {
        "task": "# Task",
        "inconsistent": "# Pair is inconsistent",
        "revise": "# Revise",
        "review": "# Review",
        "challenge": "# Challenge",
    }


def test_prompts_carry_guidance_and_lessons_but_no_field_values() -> None:
    strategy = Strategy(
        max_rounds=4,
        agent_steps=37,
        repair_steps=19,
        context_tokens=31_337,
        tool_output_chars=19_191,
        review_max_output_tokens=4_001,
        challenge_inputs=191,
        synthesis_guidance="look at empty inputs",
        lessons=("bound each test in time",),
    )
    agent = Agent(job([ScriptedModel(native_tools=False)], strategy=strategy), 0)
    sent = agent._entries[0].message.content + opening_of(agent.job)
    assert "look at empty inputs" in sent
    assert "- bound each test in time" in sent
    assert not [n for n in ("37", "19", "31337", "31_337", "4001", "191") if n in sent]


def test_slots_have_names_and_different_styles() -> None:
    models = [ScriptedModel()]
    systems = [Agent(job(models), slot)._entries[0].message.content for slot in range(4)]
    heads = [text.split(" you ")[0].split(":")[0] for text in systems]
    assert heads == [
        "You are agent-1. You are careful",
        "You are agent-2. You are bold",
        "You are agent-3. You are thorough",
        "You are agent-4. You are careful",
    ]


def test_native_models_are_not_told_the_text_protocol() -> None:
    native = Agent(job([ScriptedModel()]), 0)._entries[0].message.content
    text = Agent(job([ScriptedModel(native_tools=False)]), 0)._entries[0].message.content
    assert "```tool" not in native
    assert '```tool\n{"tool": "run"' in text
    assert "- `write_file`: " in text


@given(st.text(alphabet="`a\n", max_size=60))
def test_a_fence_is_longer_than_any_inside(text: str) -> None:
    ticks = fenced(text).split("\n")[0]
    assert set(ticks) == {"`"}
    assert ticks not in text
    assert fenced(text) == f"{ticks}\n{text}\n{ticks}"


def test_clean_drops_terminal_escapes_controls_and_lone_surrogates() -> None:
    assert clean(b"\x1b[31mred\x1b[0m \x1b]0;title\x07ok\x00\x08\r\n\ttab") == "red ok\n\ttab"
    assert clean(b"\xff\xfeA") == "\ufffd\ufffdA"
    assert clean("a\ud800b") == "a?b"
    assert clean("ünï 漢") == "ünï 漢"


def test_a_short_text_is_not_cut() -> None:
    assert cut("x" * 200, 200) == ("x" * 200, False)


@given(st.integers(200, 900), st.integers(1, 2_000))
def test_a_cut_text_keeps_head_and_tail_and_counts_the_gap(most: int, extra: int) -> None:
    text = "".join(chr(97 + i % 26) for i in range(most + extra))
    kept, was_cut = cut(text, most)
    head, mark, tail = kept.split("\n")
    assert was_cut
    assert len(kept) <= most
    assert text.startswith(head)
    assert text.endswith(tail)
    assert mark == f"[... {len(text) - len(head) - len(tail)} characters left out ...]"
    assert abs(len(head) - len(tail)) <= 1
