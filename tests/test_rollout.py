"""One rollout: solved under caps, judged in scope, never scored when the world failed."""

from __future__ import annotations

import pytest

from rsi.budget import Caps
from rsi.errors import ModelRefused, ModelUnavailable, SandboxFailure
from rsi.ports import Execution
from rsi.prism.panel import Implementation, Panel
from rsi.prism.tree import Tree
from rsi.records import Rollout, RolloutRequest, Workflow
from rsi.rollout import run_rollout
from rsi.strategy import Strategy
from tests.builders import task
from workers.fakes import InstantSandbox, ScriptedModel, calls

GOOD, BAD = "def f(x):\n    return 2 * x\n", "def f(x):\n    return x\n"


def panel() -> Panel:
    """b, g, two other valid and two invalid; a program is right when it doubles."""
    kinds = {"b": "initial", "g": "reference", "v1": "valid", "v2": "valid"}
    kinds |= {"i1": "invalid", "i2": "invalid"}
    return Panel(
        task_id="t",
        implementations=tuple(
            Implementation(
                implementation_id=name,
                kind=kind,
                program=Tree.of(
                    {"solution.py": (BAD if kind in ("initial", "invalid") else GOOD) + f"# {name}"}
                    if kind != "initial"
                    else {"solution.py": BAD}
                ),
            )
            for name, kind in kinds.items()
        ),
    )


def writer() -> ScriptedModel:
    """Writes a suite and the right repair, then submits."""
    return ScriptedModel(
        [
            calls("write_file", path="submission/run_tests.sh", content="#!/bin/sh\ntrue\n"),
            calls("write_file", path="solution.py", content=GOOD),
            calls("submit"),
        ]
    )


def by_program(execution: Execution) -> int:
    """Every suite accepts exactly the doubling programs."""
    return 0 if b"2 * x" in execution.program.files["solution.py"].content else 1


async def play(
    sandbox: InstantSandbox,
    *models: ScriptedModel,
    scope: str = "signal",
    repetition: str = "r",
    run_seed: int = 1,
) -> Rollout:
    request = RolloutRequest(strategy=Strategy(), task_id="t", repetition=repetition, scope=scope)
    workflow = Workflow(agents=len(models), challenge=False, verify_runs=1)
    return await run_rollout(
        request, task(program=BAD), panel(), models, sandbox, Caps(), workflow, run_seed
    )


async def test_a_training_rollout_sees_the_signal_panel_only():
    sandbox = InstantSandbox(by_program)
    found = await play(sandbox, writer())
    assert (found.rar, found.jsf, found.label, found.failure) == (1, 1, "", "")
    assert [c.implementation_id for c in found.outcome.cells] == ["b", "g"]
    played = {e.program.text("solution.py") for e in sandbox.executions}
    assert not any("# i1" in text or "# v1" in text for text in played)
    assert found.spend.rollouts == 1 and found.spend.model_calls == 3
    assert found.isolation == "process" and found.trajectories


async def test_a_full_rollout_is_judged_on_every_implementation():
    found = await play(InstantSandbox(by_program), writer(), scope="full")
    assert [c.implementation_id for c in found.outcome.cells] == ["b", "g", "v1", "v2", "i1", "i2"]
    assert (found.rar, found.jsf, found.outcome.a, found.outcome.r) == (1, 1, 1.0, 1.0)


async def test_no_model_is_shown_the_hidden_panel():
    model = writer()
    await play(InstantSandbox(by_program), model, scope="full")
    said = "".join(request.model_dump_json() for request in model.requests)
    assert "2 * x" not in said.split("write_file")[0]
    for canary in ("# g", "# v1", "# v2", "# i1", "# i2"):
        assert canary not in said


async def test_an_agent_that_submits_nothing_scores_zero_and_is_labelled():
    found = await play(InstantSandbox(by_program), ScriptedModel())
    assert (found.rar, found.failure) == (0, "")
    assert found.fallback and found.label


async def test_a_dead_endpoint_is_a_failure_and_no_zero():
    model = ScriptedModel(after=ModelUnavailable("endpoint does not answer"))
    found = await play(InstantSandbox(by_program), model)
    assert found.outcome is None and found.rar is None and found.label == ""
    assert "endpoint" in found.failure


async def test_one_dead_slot_of_two_does_not_fail_the_rollout():
    dead = ScriptedModel(after=ModelUnavailable("endpoint does not answer"))
    found = await play(InstantSandbox(by_program), writer(), dead)
    assert found.failure == "" and found.rar == 1


async def test_a_refused_key_stops_everything():
    with pytest.raises(ModelRefused, match="wrong key"):
        await play(InstantSandbox(by_program), ScriptedModel(after=ModelRefused("wrong key")))


async def test_cells_that_the_world_failed_leave_no_score():
    def broken_on_g(execution: Execution) -> int | Exception:
        if b"# g" in execution.program.files["solution.py"].content:
            return SandboxFailure("daemon went away")
        return by_program(execution)

    found = await play(InstantSandbox(broken_on_g), writer())
    assert found.rar is None and "1 cells not judged: daemon went away" in found.failure
    assert found.spend.model_calls == 3, "what was spent is still known"


async def test_chance_follows_run_and_repetition_and_nothing_else():
    async def seeds(repetition: str, run_seed: int) -> list[int | None]:
        model = writer()
        await play(InstantSandbox(by_program), model, repetition=repetition, run_seed=run_seed)
        return [request.seed for request in model.requests]

    first = await seeds("r-1", 1)
    assert len(first) == 3 and None not in first
    assert await seeds("r-1", 1) == first, "the same rollout again draws the same"
    for repetition, run_seed in (("r-2", 1), ("r-1", 2)):
        assert not set(first) & set(await seeds(repetition, run_seed))
