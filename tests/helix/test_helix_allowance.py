"""The caps of one rollout hold whatever agents do at once."""

from __future__ import annotations

import asyncio
import random
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsi.budget import Caps, Spend
from rsi.errors import LimitReached, ModelUnavailable, SandboxFailure
from rsi.helix.agent import Agent
from rsi.helix.allowance import KILL_GRACE_S, Allowance, MeteredSandbox
from rsi.helix.job import Job, together
from rsi.ports import Completed, Execution, ModelReply, ModelRequest
from rsi.prism.task import Limits
from rsi.prism.tree import Tree
from rsi.records import Workflow
from rsi.strategy import Strategy
from tests.helix.helix_world import job, word_suite, word_task
from workers.fakes import InstantSandbox, ScriptedModel, Tripwire, calls, says

ASK = ModelRequest(messages=(), max_output_tokens=100)
RUN = Execution(program=Tree(), argv=("true",), limits=Limits(wall_seconds=4))


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def spent(model_calls: int = 1, inputs: int = 10, outputs: int = 5) -> ModelReply:
    spend = Spend(model_calls=model_calls, input_tokens=inputs, output_tokens=outputs, usd=0.5)
    return ModelReply(spend=spend)


async def test_a_call_is_reserved_at_its_bound_and_settled_at_its_use() -> None:
    allowance = Allowance(Caps(model_calls=9, input_tokens=1_000, output_tokens=150))

    def during(_: ModelRequest) -> ModelReply:
        assert allowance.meter.room("input_tokens") == 600
        assert allowance.meter.room("output_tokens") == 50
        assert allowance.meter.room("model_calls") == 8
        return spent()

    await allowance.complete("a", ScriptedModel([during]), ASK, 400)
    assert allowance.meter.room("input_tokens") == 990
    assert allowance.meter.room("output_tokens") == 145
    assert allowance.spend("a") == Spend(model_calls=1, input_tokens=10, output_tokens=5, usd=0.5)
    assert allowance.spend("b") == Spend()
    assert allowance.spend().model_calls == 1


@pytest.mark.parametrize(
    ("tokens", "caps", "name"),
    [
        (1_001, Caps(input_tokens=1_000), "input_tokens"),
        (1, Caps(output_tokens=100), ""),
        (1_000, Caps(input_tokens=1_000), ""),
    ],
)
async def test_a_call_without_room_is_never_sent(tokens: int, caps: Caps, name: str) -> None:
    model = ScriptedModel([spent()])
    allowance = Allowance(caps)
    if not name:
        await allowance.complete("a", model, ASK, tokens)
        return
    with pytest.raises(LimitReached) as reached:
        await allowance.complete("a", model, ASK, tokens)
    assert reached.value.limit == name
    assert model.requests == []


async def test_a_failed_call_counts_as_one_call_and_frees_its_tokens() -> None:
    allowance = Allowance(Caps())
    with pytest.raises(ModelUnavailable):
        await allowance.complete("a", ScriptedModel([ModelUnavailable("x")]), ASK, 400)
    assert allowance.spend("a") == Spend(model_calls=1)
    assert allowance.meter.room("input_tokens") == Caps().input_tokens


async def test_a_reply_that_reports_no_call_still_counts_as_one() -> None:
    allowance = Allowance(Caps())
    await allowance.complete("a", ScriptedModel([spent(model_calls=0)]), ASK, 1)
    assert allowance.spend("a").model_calls == 1


async def test_nothing_starts_after_the_deadline() -> None:
    clock, model = Clock(), ScriptedModel(after=spent())
    allowance = Allowance(Caps(wall_seconds=10), clock)
    inner = InstantSandbox(lambda _: 0)
    clock.now += 9.5
    await allowance.complete("a", model, ASK, 1)
    MeteredSandbox(inner, allowance, "a").run(RUN)
    clock.now += 0.5
    with pytest.raises(LimitReached, match="wall_seconds"):
        await allowance.complete("a", model, ASK, 1)
    with pytest.raises(LimitReached, match="wall_seconds"):
        MeteredSandbox(inner, allowance, "a").run(RUN)
    assert len(model.requests) == len(inner.executions) == 1
    assert allowance.spend().wall_seconds == 10


async def test_a_call_is_cut_off_at_the_deadline_and_settles_in_full() -> None:
    allowance = Allowance(Caps(wall_seconds=1))
    begun = time.monotonic()
    with pytest.raises(LimitReached, match="wall_seconds"):
        await allowance.complete("a", ScriptedModel(delay_s=60), ASK, 40)
    assert time.monotonic() - begun < 5
    assert allowance.spend("a") == Spend(model_calls=1, input_tokens=40, output_tokens=100)


def test_a_sandbox_run_is_reserved_at_its_limit_and_settled_at_its_time() -> None:
    allowance = Allowance(Caps(sandbox_seconds=20))
    done = Completed(exit_code=0, wall_seconds=1.5, isolation="process")

    def decide(_: Execution) -> Completed:
        assert allowance.meter.room("sandbox_seconds") == 20 - 4 - KILL_GRACE_S
        return done

    metered = MeteredSandbox(InstantSandbox(decide, "docker"), allowance, "a")
    assert metered.run(RUN) == done
    assert metered.isolation == "docker"
    assert allowance.spend("a").sandbox_seconds == 1.5
    assert allowance.meter.room("sandbox_seconds") == 18.5


def test_a_sandbox_run_without_room_never_starts() -> None:
    inner = InstantSandbox(lambda _: 0)
    metered = MeteredSandbox(inner, Allowance(Caps(sandbox_seconds=4.5)), "a")
    with pytest.raises(LimitReached, match="sandbox_seconds"):
        metered.run(RUN)
    assert inner.executions == []


def test_a_failed_sandbox_run_frees_its_reservation() -> None:
    allowance = Allowance(Caps(sandbox_seconds=20))
    metered = MeteredSandbox(InstantSandbox(lambda _: SandboxFailure("x")), allowance, "a")
    with pytest.raises(SandboxFailure):
        metered.run(RUN)
    assert allowance.meter.room("sandbox_seconds") > 19


async def test_equal_cells_are_run_once_even_at_the_same_time() -> None:
    def slowly(_: Execution) -> int:
        time.sleep(0.02)
        return 0

    inner = InstantSandbox(slowly, tripwire=Tripwire())
    one, suite = job([ScriptedModel()], sandbox=inner), word_suite("wants x")
    found = await together(one.judge("a", suite, one.task.program) for _ in range(4))
    assert len(inner.executions) == 1
    assert {str(v.state) for v in found} == {"ACCEPT"}


async def test_another_repetition_is_a_fresh_cell() -> None:
    one = job([ScriptedModel()])
    for repetition in (0, 1, 1, 2):
        await one.judge("a", word_suite("wants x"), one.task.program, repetition)
    assert isinstance(one.sandbox, InstantSandbox)
    assert len(one.sandbox.executions) == 3


async def test_a_cell_that_cannot_be_observed_is_an_error_and_no_verdict() -> None:
    one = job([ScriptedModel()], sandbox=InstantSandbox(lambda _: SandboxFailure("no cgroup")))
    with pytest.raises(SandboxFailure, match="no cgroup"):
        await one.judge("a", word_suite(), one.task.program)


async def test_the_first_error_is_raised_as_it_was_and_ends_the_rest() -> None:
    ended: list[str] = []

    async def waits() -> int:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")
        return 1

    async def fails() -> int:
        raise LimitReached("model_calls")

    with pytest.raises(LimitReached):
        await together([waits(), fails()])
    assert ended == ["cancelled"]


class Watched:
    """Counts, from outside the meter, what eight agents use at most."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.tokens_in = self.tokens_out = self.asked = 0
        self.seconds = 0.0
        self.lock = threading.Lock()

    def reply(self, request: ModelRequest) -> ModelReply:
        bound = ScriptedModel().count_tokens(request)
        inputs = self.draw.randint(bound // 2, bound)
        outputs = self.draw.randint(0, request.max_output_tokens)
        self.asked, self.tokens_in = self.asked + 1, self.tokens_in + inputs
        self.tokens_out += outputs
        spend = Spend(model_calls=1, input_tokens=inputs, output_tokens=outputs)
        asked = calls("run", command="x") if self.draw.random() < 0.5 else calls("list_files")
        asked = says("") if self.draw.random() < 0.05 else asked
        return asked.updated(spend=spend)

    def decide(self, execution: Execution) -> Completed:
        seconds = self.draw.uniform(0, execution.limits.wall_seconds + KILL_GRACE_S)
        with self.lock:
            self.seconds += seconds
        return Completed(exit_code=0, wall_seconds=seconds, isolation="process")


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 60),
    st.integers(1_000, 40_000),
    st.integers(100, 60_000),
    st.floats(1, 90),
)
def test_eight_agents_at_once_never_pass_a_cap(
    seed: int, model_calls: int, inputs: int, outputs: int, seconds: float
) -> None:
    caps = Caps(
        model_calls=model_calls,
        input_tokens=inputs,
        output_tokens=outputs,
        sandbox_seconds=seconds,
    )
    draw = random.Random(seed)
    watched = Watched(draw)
    models = [ScriptedModel(after=watched.reply, delay_s=draw.choice([0, 0.001])) for _ in range(8)]
    shared = Job(
        task=word_task(limits=Limits(wall_seconds=5)),
        strategy=Strategy(),
        workflow=Workflow(agents=8),
        models=models,
        sandbox=InstantSandbox(watched.decide),
        allowance=Allowance(caps),
        seed=seed,
    )
    agents = [Agent(shared, slot) for slot in range(8)]

    async def play() -> None:
        await together(agent.run("act", "# Task", 10) for agent in agents)

    asyncio.run(play())
    assert watched.asked <= model_calls
    assert watched.tokens_in <= inputs
    assert watched.tokens_out <= outputs
    assert watched.seconds <= seconds
    total = shared.allowance.spend()
    assert (total.model_calls, total.input_tokens) == (watched.asked, watched.tokens_in)
    assert total.output_tokens == watched.tokens_out
    assert total.sandbox_seconds == pytest.approx(watched.seconds)
    assert sum((a.trajectory().spend.model_calls for a in agents), 0) == watched.asked
    for agent in agents:
        assert (agent.stop_reason == "cap") == bool(agent.stopped_by)
