"""The fakes that are shipped: scripted, instant, and strict about paid work."""

from __future__ import annotations

import pytest

from rsi.errors import ModelUnavailable
from rsi.ports import Completed, Execution, Message, ModelRequest
from rsi.prism.tree import Tree
from rsi.records import Rollout, RolloutRequest
from rsi.strategy import Strategy
from workers.fakes import InstantEvaluator, InstantSandbox, ScriptedModel, Tripwire, calls, says

ASK = ModelRequest(messages=(Message(role="user", content="x" * 39),), max_output_tokens=8)
RUN = Execution(program=Tree.of({"a": "1"}), argv=("true",))


async def test_replies_come_in_order_then_the_last_word_repeats() -> None:
    model = ScriptedModel(
        [says("one"), lambda request: says(request.messages[0].role), ModelUnavailable("down")],
        after=says("end"),
    )
    assert (await model.complete(ASK)).text == "one"
    assert (await model.complete(ASK)).text == "user"
    with pytest.raises(ModelUnavailable):
        await model.complete(ASK)
    assert [(await model.complete(ASK)).text for _ in range(2)] == ["end", "end"]
    assert model.requests == [ASK] * 5


async def test_spend_is_counted_and_never_above_what_was_asked_for() -> None:
    model = ScriptedModel([says("y" * 400), says("y" * 7)])
    spend = (await model.complete(ASK)).spend
    assert (spend.model_calls, spend.input_tokens, spend.output_tokens) == (1, 10, 8)
    assert (await model.complete(ASK)).spend.output_tokens == 2
    assert model.count_tokens(ASK) == 10


async def test_without_a_script_a_model_submits() -> None:
    assert (await ScriptedModel().complete(ASK)).tool_calls == calls("submit").tool_calls


def test_the_sandbox_sees_what_was_decided() -> None:
    sandbox = InstantSandbox(lambda _: 3)
    assert sandbox.run(RUN) == Completed(exit_code=3, wall_seconds=0.01, isolation="process")
    assert sandbox.run(RUN.updated(collect=True)).tree == RUN.program
    seen = Completed(exit_code=None, signal=9, isolation="docker")
    assert InstantSandbox(lambda _: seen).run(RUN) == seen
    assert len(sandbox.executions) == 2


def test_the_same_execution_paid_twice_trips() -> None:
    sandbox = InstantSandbox(lambda _: 0, tripwire=Tripwire())
    sandbox.run(RUN)
    sandbox.run(RUN.updated(argv=("false",)))
    with pytest.raises(AssertionError, match="paid twice"):
        sandbox.run(RUN)


def test_the_same_rollout_paid_twice_trips() -> None:
    def play(request: RolloutRequest) -> Rollout:
        return Rollout(
            rollout_id=request.rollout_id,
            strategy_id=request.strategy.strategy_id,
            task_id=request.task_id,
            family="f",
            source="s",
            scope="signal",
            outcome=None,
            isolation="process",
        )

    evaluator = InstantEvaluator(play)
    one, two = (RolloutRequest(strategy=Strategy(), task_id="t", repetition=r) for r in "12")
    assert [r.rollout_id for r in evaluator.evaluate([two, one])] == [
        two.rollout_id,
        one.rollout_id,
    ]
    with pytest.raises(AssertionError, match="paid twice"):
        evaluator.evaluate([one])
