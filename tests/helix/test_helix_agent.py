"""One agent: steps, limits, malformed replies, and what is remembered of it."""

from __future__ import annotations

import json

import pytest

from rsi.budget import Caps
from rsi.digest import seed_of
from rsi.errors import ModelRefused, ModelUnavailable, SandboxFailure
from rsi.helix.agent import REPLY_TOKENS, Agent, opening_of
from rsi.helix.wording import LEFT_OUT
from rsi.ports import Completed, Execution, ToolCall
from rsi.prism.tree import Tree
from rsi.strategy import Strategy
from tests.helix.helix_world import agent, job, word_task
from workers.fakes import InstantSandbox, ScriptedModel, calls, says


async def played(model: ScriptedModel, steps: int = 10, **changes: object) -> Agent:
    one = agent(model, **changes)
    await one.run("act", opening_of(one.job), steps)
    return one


async def test_an_agent_works_in_its_workspace_and_submits() -> None:
    model = ScriptedModel([calls("write_file", path="a.py", content="x"), calls("submit")])
    one = await played(model)
    assert one.workspace == word_task().program.with_file("a.py", "x")
    seen = one.trajectory()
    assert (seen.agent, seen.stop_reason, seen.stopped_by) == ("agent-1", "submitted", "")
    assert [(s.kind, s.tool, s.observation) for s in seen.steps] == [
        ("act", "write_file", "written: a.py"),
        ("act", "submit", "submitted"),
    ]
    assert json.loads(seen.steps[0].arguments) == {"path": "a.py", "content": "x"}
    assert seen.spend.model_calls == 2
    assert seen.spend.input_tokens == sum(s.spend.input_tokens for s in seen.steps) > 0


async def test_steps_are_bounded_and_the_workspace_stays_as_it_stands() -> None:
    model = ScriptedModel(after=calls("write_file", path="a.py", content="x"))
    one = await played(model, steps=4)
    seen = one.trajectory()
    assert len(seen.steps) == len(model.requests) == 4
    assert seen.stop_reason == "steps"
    assert seen.symptoms.steps_exhausted == 1
    assert "a.py" in one.workspace.files


async def test_submitting_in_the_last_step_exhausts_nothing() -> None:
    one = await played(ScriptedModel([calls("list_files"), calls("submit")]), steps=2)
    assert one.stop_reason == "submitted"
    assert one.trajectory().symptoms.steps_exhausted == 0


async def test_run_tells_how_many_steps_a_turn_took() -> None:
    one = agent(ScriptedModel([calls("submit"), calls("list_files"), calls("submit")]))
    assert await one.run("act", "# Task", 9) == 1
    assert await one.run("repair", "# Pair is inconsistent", 9) == 2
    assert await one.run("repair", "# Pair is inconsistent", 0) == 0
    assert one.stop_reason == "steps"
    assert one.trajectory().symptoms.steps_exhausted == 0


async def test_each_request_has_its_own_seed_and_the_tools() -> None:
    model = ScriptedModel([calls("list_files"), calls("submit")])
    await played(model)
    assert [r.seed for r in model.requests] == [seed_of(7, 0, 0), seed_of(7, 0, 1)]
    assert all(len(r.tools) == 5 for r in model.requests)
    assert all(r.max_output_tokens == REPLY_TOKENS for r in model.requests)
    assert [m.role for m in model.requests[1].messages] == ["system", "user", "assistant", "tool"]


async def test_the_text_protocol_sends_no_tools_and_reads_blocks() -> None:
    block = '```tool\n{"tool": "list_files", "arguments": {}}\n```'
    model = ScriptedModel([says(block), says('```tool\n{"tool": "submit"}\n```')])
    model.native_tools = False
    one = await played(model)
    assert one.stop_reason == "submitted"
    assert all(r.tools == () for r in model.requests)
    last = model.requests[1].messages[-1]
    assert last.role == "user"
    assert "solution.py (6 bytes)" in last.content


async def test_a_command_runs_in_the_sandbox_and_its_files_come_back() -> None:
    def decide(execution: Execution) -> Completed:
        left = execution.program.with_file("new.txt", "n").with_file("__pycache__/a.pyc", "c")
        return Completed(exit_code=2, stdout=b"\x1b[1mhello\xff", tree=left, isolation="process")

    one = await played(
        ScriptedModel([calls("run", command="make"), calls("submit")]),
        sandbox=InstantSandbox(decide),
    )
    assert sorted(one.workspace.files) == ["new.txt", "solution.py"]
    assert one.trajectory().steps[0].observation == "exit status 2\nstdout:\nhello\ufffd"


async def test_without_a_collected_tree_the_workspace_is_kept() -> None:
    done = Completed(exit_code=None, signal=9, killed_by="wall", isolation="process")
    one = await played(
        ScriptedModel([calls("run", command="loop"), calls("submit")]),
        sandbox=InstantSandbox(lambda _: done),
    )
    assert one.workspace == word_task().program
    assert "wall limit" in one.trajectory().steps[0].observation


async def test_tool_results_are_cut_and_counted() -> None:
    big = word_task(program=Tree.of({"big.txt": "h" * 5_000 + "t" * 5_000}))
    model = ScriptedModel([calls("read_file", path="big.txt"), calls("list_files")])
    one = await played(model, about=big, strategy=Strategy(tool_output_chars=300))
    sent = model.requests[1].messages[-1].content
    assert len(sent) <= 300
    assert sent.startswith("hhh")
    assert sent.endswith("ttt")
    assert "characters left out ...]" in sent
    assert one.trajectory().steps[0].observation == sent
    assert one.trajectory().symptoms.tool_output_cut == 1


async def test_the_context_is_bounded_and_the_requirement_never_left_out() -> None:
    wordy = word_task(instruction="Keep me. " + "r" * 1_000, program=Tree.of({"a": "y" * 3_000}))
    model = ScriptedModel(after=calls("read_file", path="a"))
    small = Strategy(context_tokens=2_000, tool_output_chars=4_000)
    one = await played(model, steps=6, about=wordy, strategy=small)
    for request in model.requests:
        assert model.count_tokens(request) <= 2_000
        assert "Keep me. " + "r" * 1_000 in request.messages[1].content
        assert request.messages[0].content.startswith("You are agent-1.")
    assert any(m.content == LEFT_OUT for m in model.requests[-1].messages)
    assert model.requests[-1].messages[-1].content == "y" * 3_000
    elided = sum(any(m.content == LEFT_OUT for m in r.messages) for r in model.requests)
    assert one.trajectory().symptoms.context_elided == elided > 0


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (says("", ToolCall(call_id="1", name="fly", arguments="{}")), "there is no tool 'fly'"),
        (calls("read_file", path="../secret"), "not a path inside the workspace"),
        (says("thinking aloud"), "there was no tool call"),
        (says(""), "there was no tool call"),
        (says("half a rep", finish_reason="length"), "cut off at the output limit"),
        (
            says("", ToolCall(call_id="1", name="run", arguments='{"c'), finish_reason="length"),
            "write smaller pieces",
        ),
    ],
)
async def test_a_malformed_reply_is_answered_and_counted(reply: object, answer: str) -> None:
    model = ScriptedModel([reply, calls("submit")])  # type: ignore[list-item]
    one = await played(model)
    assert answer in model.requests[1].messages[-1].content
    assert answer in one.trajectory().steps[0].observation
    assert one.trajectory().symptoms.malformed_replies == 1
    assert one.stop_reason == "submitted"


async def test_two_replies_without_a_call_in_a_row_end_the_agent() -> None:
    model = ScriptedModel([says(), calls("list_files"), says("hm"), says(), calls("submit")])
    one = await played(model)
    assert one.stop_reason == "no_tool_call"
    assert len(model.requests) == 4
    assert one.trajectory().symptoms.malformed_replies == 3


async def test_replies_cut_off_do_not_count_as_silence() -> None:
    cut_off = says("aaa", finish_reason="length")
    one = await played(ScriptedModel([cut_off, cut_off, cut_off, calls("submit")]))
    assert one.stop_reason == "submitted"


async def test_several_calls_in_one_reply_are_one_step_and_all_answered() -> None:
    three = says(
        "",
        ToolCall(call_id="1", name="list_files", arguments="{}"),
        ToolCall(call_id="2", name="submit", arguments="{}"),
        ToolCall(call_id="3", name="write_file", arguments='{"path": "z", "content": ""}'),
    )
    model = ScriptedModel([three, calls("submit")])
    one = await played(model)
    assert len(one.trajectory().steps) == 1
    assert "z" not in one.workspace.files
    await one.run("repair", "# Pair is inconsistent", 1)
    results = [m for m in model.requests[1].messages if m.role == "tool"]
    assert [m.tool_call_id for m in results] == ["1", "2", "3"]
    assert results[1].content == "submitted"
    assert results[2].content.startswith("not carried out")


async def test_a_cap_ends_the_agent_normally_and_names_itself() -> None:
    model = ScriptedModel(after=calls("list_files"))
    one = await played(model, caps=Caps(model_calls=3))
    assert (one.stop_reason, one.stopped_by) == ("cap", "model_calls")
    assert len(model.requests) == 3


async def test_a_cap_inside_a_tool_leaves_the_step_and_no_unanswered_call() -> None:
    two = says(
        "",
        ToolCall(call_id="1", name="run", arguments='{"command": "a"}'),
        ToolCall(call_id="2", name="list_files", arguments="{}"),
    )
    model = ScriptedModel([two, calls("submit")])
    one = await played(model, caps=Caps(sandbox_seconds=2))
    assert (one.stop_reason, one.stopped_by) == ("cap", "sandbox_seconds")
    assert len(one.trajectory().steps) == 1
    await one.run("repair", "# Pair is inconsistent", 1)
    assert [m.tool_call_id for m in model.requests[1].messages if m.role == "tool"] == ["1", "2"]


async def test_a_low_output_cap_lowers_what_one_reply_may_have() -> None:
    model = ScriptedModel()
    await played(model, caps=Caps(output_tokens=500))
    assert model.requests[0].max_output_tokens == 500


async def test_a_model_out_of_reach_ends_this_agent_only() -> None:
    one = await played(ScriptedModel([calls("list_files"), ModelUnavailable("502 from host")]))
    assert (one.stop_reason, one.stopped_by) == ("model_failure", "502 from host")
    assert len(one.trajectory().steps) == 1


async def test_a_refusal_for_good_is_raised() -> None:
    with pytest.raises(ModelRefused, match="wrong key"):
        await played(ScriptedModel([ModelRefused("wrong key")]))


async def test_a_sandbox_failure_is_retried_twice_then_ends_the_agent() -> None:
    failing = InstantSandbox(lambda _: SandboxFailure("node lost"))
    one = await played(ScriptedModel([calls("run", command="a")]), sandbox=failing)
    assert (one.stop_reason, one.stopped_by) == ("infrastructure", "node lost")
    assert len(failing.executions) == 3
    outcomes = iter([SandboxFailure("x"), SandboxFailure("x"), 0])
    mended = InstantSandbox(lambda _: next(outcomes))
    one = await played(ScriptedModel([calls("run", command="a"), calls("submit")]), sandbox=mended)
    assert one.stop_reason == "submitted"


async def test_texts_of_a_step_are_bounded_and_clean() -> None:
    reply = says("s\x1b[1m" + "a" * 1_000, ToolCall(call_id="1", name="run", arguments="b" * 999))
    one = await played(
        ScriptedModel([reply, calls("submit")]), strategy=Strategy(tool_output_chars=200)
    )
    step = one.trajectory().steps[0]
    assert len(step.said) <= 200
    assert len(step.arguments) <= 200
    assert "\x1b" not in step.said


async def test_agents_share_no_workspace_and_no_messages() -> None:
    models = [ScriptedModel([calls("write_file", path="a", content="1"), calls("submit")])] * 2
    shared = job(models)
    first, second = Agent(shared, 0), Agent(shared, 1)
    await first.run("act", "# Task", 5)
    assert second.workspace == word_task().program
    assert len(second._entries) == 1
