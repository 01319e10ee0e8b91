"""Odd input that once ended in a traceback, a hang or a leak: each is one line now."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rsi import export
from rsi.budget import Caps
from rsi.compose import load
from rsi.errors import FrozenError, RunConflict, SettingsError, UserError
from rsi.frozen import read_frozen
from rsi.helix.agent import MAX_CALLS
from rsi.helix.solve import solve
from rsi.helix.tools import MAX_COMMAND_BYTES
from rsi.ports import ModelReply, ToolCall
from rsi.records import Workflow
from rsi.settings import ExportSettings, TrainSettings
from rsi.strategy import Strategy
from rsi.trajectory import Trajectory
from tests.builders import task
from workers.fakes import InstantSandbox, ScriptedModel
from workers.files import write_atomic
from workers.journal import Journal
from workers.llm import LiteLLMModel, ModelProfile
from workers.store import RunStore, trajectory_path


def refusal(*argv: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load("config", TrainSettings, ["+budget=smoke", *argv])
    return str(caught.value)


@pytest.mark.parametrize("group", ["strategy", "workflow", "sandbox", "benchmark", "reflector"])
def test_a_group_set_to_null_is_one_line(group):
    assert "\n" not in refusal(f"{group}=null")


@pytest.mark.parametrize("argument", ["budget.wall_seconds=inf", "budget.usd=nan", "runs_dir="])
def test_values_that_no_run_can_have_are_refused(argument):
    assert argument.partition("=")[0] in refusal(argument)


@pytest.mark.parametrize("value", ["ünï", "~/x", "a#b", "a=b", "x y", "back\\slash", "it's"])
def test_a_folder_may_have_any_name(value):
    found = load("config", TrainSettings, ["+budget=smoke", f"runs_dir={value}"])
    assert found.runs_dir == Path(value)


def test_a_run_may_be_named_by_a_number():
    assert load("config", TrainSettings, ["+budget=smoke", "run_id=123"]).run_id == "123"


def test_a_key_in_place_of_its_name_is_refused_and_not_echoed():
    line = refusal("model.api_key_env=sk-canary-123456")
    assert "NAME of an environment variable" in line and "canary" not in line
    line = refusal("model.api_base=http://user:secret@127.0.0.1:9/v1")
    assert "api_base" in line and "secret@" not in line


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"digests": {}, "caps": NaN}', '{"digests": {}, "prompts": null}']
)
def test_a_strange_frozen_file_is_one_line(tmp_path, content):
    path = tmp_path / "f.json"
    path.write_text(content)
    with pytest.raises(FrozenError, match=r"f\.json"):
        read_frozen(path)


def test_a_pipe_or_a_folder_is_no_frozen_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(FrozenError, match="no regular file"):
            read_frozen(tmp_path / name)


def test_only_regular_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("elsewhere")
    for name in ("pipe", "link"):
        with pytest.raises(UserError, match="no regular file"):
            write_atomic(tmp_path / name, "x")
    assert (tmp_path / "link").is_symlink()


def test_a_folder_is_no_target_of_an_export(tmp_path):
    run = tmp_path / "r"
    run.mkdir()
    (run / "frozen_strategy.json").write_text("{}")
    with pytest.raises((SettingsError, FrozenError)):
        export.export(ExportSettings(run="r", runs_dir=tmp_path, out=tmp_path))


@pytest.mark.parametrize(
    "content", [b"{{{", b"\x00\xff", b"a: !!python/object:x.y {}", b"\t- a: b"]
)
def test_damaged_settings_are_one_line(tmp_path, content):
    RunStore.create_or_resume(tmp_path, "r", {"a": 1}).close()
    (tmp_path / "r" / "settings.yaml").write_bytes(content)
    with pytest.raises(RunConflict, match=r"settings.yaml|other inputs"):
        RunStore.create_or_resume(tmp_path, "r", {"a": 1})


def test_a_run_id_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "mlflow.db").write_text("")
    with pytest.raises(RunConflict, match="is a file"):
        RunStore.create_or_resume(tmp_path, "mlflow.db", {})


def test_a_finished_run_without_its_events_is_not_started_anew(tmp_path):
    with RunStore.create_or_resume(tmp_path, "r", {}) as store:
        store.append("run_started", "r", {})
        store.write_json("frozen_strategy.json", {})
    (tmp_path / "r" / "events.jsonl").unlink()
    with pytest.raises(RunConflict, match="missing or empty"):
        RunStore.create_or_resume(tmp_path, "r", {})


@pytest.mark.parametrize("content", [b"", b"no gzip", b"\x1f\x8b\x08\x00"])
def test_damaged_trajectories_are_one_line(tmp_path, content):
    with RunStore.create_or_resume(tmp_path, "r", {}) as store:
        store.save_trajectories("x", [Trajectory(agent="a", stop_reason="submitted")])
        assert len(store.load_trajectories("x")) == 1
        trajectory_path(store.folder, "x").write_bytes(content)
        with pytest.raises(RunConflict, match="damaged; delete it"):
            store.load_trajectories("x")


@pytest.mark.parametrize(
    "changes", [{"time": "late"}, {"kind": ["rollout"]}, {"key": 7}, {"data": []}, {"extra": 1}]
)
def test_an_event_of_another_shape_is_named_by_its_line(tmp_path, changes):
    event = {"seq": 0, "time": 1.0, "kind": "rollout", "key": "k", "data": {}}
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps({**event, **changes}) + "\n")
    with pytest.raises(RunConflict, match="line 1 is damaged"):
        Journal(path)


def test_a_command_has_room_for_the_system_but_no_more():
    assert 50_000 < MAX_COMMAND_BYTES < 128 * 1024


def test_our_own_key_is_taken_out_of_what_an_endpoint_says(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-canary-123456")
    model = LiteLLMModel(ModelProfile(name="m", model="openai/x", api_key_env="MY_KEY"))
    assert model._redacted("Bearer sk-canary-123456!") == "Bearer [key]!"


async def test_a_reply_with_many_calls_is_cut_to_a_few():
    many = tuple(
        ToolCall(
            call_id=f"c{i}",
            name="write_file",
            arguments=json.dumps({"path": f"f{i}", "content": "x"}),
        )
        for i in range(40)
    )
    model = ScriptedModel([ModelReply(tool_calls=many)])
    sandbox = InstantSandbox(lambda execution: 0)
    workflow = Workflow(agents=1, cross_validation=False, challenge=False, verify_runs=1)
    found = await solve(task(), Strategy(), Caps(), [model], sandbox, workflow, seed=1)
    first = found.trajectories[0].steps[0]
    assert first.observation.count("written") == MAX_CALLS < 40
