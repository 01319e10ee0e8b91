"""Every wrong setting is one line that names the key and the allowed range."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rsi.compose import CONF, choices, help_text, load, require_budget
from rsi.errors import SettingsError
from rsi.settings import ClusterSettings, EvaluateSettings, ReportSettings, TrainSettings


def train(*argv: str) -> TrainSettings:
    return load("config", TrainSettings, ["+budget=smoke", *argv])


def refusal(*argv: str) -> str:
    with pytest.raises(SettingsError) as caught:
        train(*argv)
    line = str(caught.value)
    assert "\n" not in line and "Traceback" not in line
    return line


@pytest.mark.parametrize("budget", ["fixed", "smoke"])
@pytest.mark.parametrize("plus", ["", "+"])
def test_a_budget_is_said_with_or_without_plus(budget, plus):
    settings = load("config", TrainSettings, [f"{plus}budget={budget}"])
    assert settings.budget.rollouts >= 1
    assert settings.evolution.generations >= 1


def test_smoke_is_smaller_than_fixed():
    fixed = load("config", TrainSettings, ["+budget=fixed"])
    smoke = load("config", TrainSettings, ["+budget=smoke"])
    assert smoke.budget.rollouts < fixed.budget.rollouts
    assert smoke.budget.wall_seconds <= 120


def test_no_budget_names_the_choices():
    with pytest.raises(SettingsError, match=r"\+budget=fixed or \+budget=smoke"):
        require_budget(["seed=1"])
    require_budget(["budget=fixed"])


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("strategy.agentSteps=1000", "strategy.agentSteps: .* got 1000 .allowed 3 to 40"),
        ("strategy.agent_steps=2", "strategy.agentSteps: .* got 2 .allowed 3 to 40"),
        ("caps.model_calls=0", "caps.model_calls: .* got 0 .allowed 1 to 10000"),
        ("budget.rollouts=0", "budget.rollouts: .* got 0"),
        ("evolution.alpha=0.9", "evolution.alpha: .* got 0.9 .allowed .*0.5"),
        ("seed=abc", "seed: .*integer.* got 'abc'"),
        ("seeds=1", "seeds: unknown key; did you mean seed"),
        ("strategy.agentStep=3", "strategy.agentStep: unknown key; did you mean strategy.agentS"),
        ("+foo=1", "foo: unknown key"),
        ("+caps.foo=1", "caps.foo: unknown key"),
        ("budget=nope", "budget"),
        ("sandbox=nope", "sandbox=nope: no such choice; there are auto, bubblewrap, docker, pro"),
        ("benchmark=folder", "benchmark.path: has no value; say benchmark.path=..."),
        ("run_id=../x", "run_id: must match"),
        ("model=", "model=: no such choice; there are builtin, named, openai"),
        ("smoke", "smoke: not understood; settings are KEY=VALUE"),
        ("--wrong", "--wrong: not understood"),
        ("seed=[1", "no viable alternative"),
        ("cluster.slots=-1", "cluster.slots: .* got -1 .allowed 0 to 4096"),
        ("workflow.agents=99", "workflow.agents: .* got 99 .allowed 1 to 9"),
    ],
)
def test_a_wrong_setting_names_the_key_and_the_range(argument, said):
    import re

    assert re.search(said, refusal(argument)), refusal(argument)


def test_any_litellm_name_is_a_model():
    assert train().model.model == "builtin/coder"
    named = train("model=openai/qwen2.5-coder:1.5b", "model.temperature=0.2").model
    assert (named.name, named.model) == ("named", "openai/qwen2.5-coder:1.5b")
    assert named.temperature == 0.2
    assert train("model=builtin").model.model == "builtin/coder"


def test_a_known_key_that_no_file_spells_out_can_be_set():
    assert train("model.temperature=0.5").model.temperature == 0.5
    found = train("reflector=model", "reflector.model.model=openai/x")
    assert found.reflector.model.model == "openai/x"
    assert train("evolution.finalists=2").evolution.finalists == 2


def test_both_spellings_of_a_strategy_field_are_read():
    assert train("strategy.agent_steps=7").strategy.agent_steps == 7
    assert train("strategy.agentSteps=8").strategy.agent_steps == 8


def test_a_strategy_file_with_blanks_in_its_path_is_read():
    found = load("evaluate", EvaluateSettings, ["strategy=/tmp/my runs/it's.json"])
    assert found.frozen == Path("/tmp/my runs/it's.json")


def test_a_missing_value_is_named_as_the_user_says_it():
    with pytest.raises(SettingsError, match=r"^strategy: has no value; say strategy=..."):
        load("evaluate", EvaluateSettings, [])
    with pytest.raises(SettingsError, match=r"^run: has no value"):
        load("report", ReportSettings, [])


def test_a_conf_folder_in_the_working_directory_changes_nothing(tmp_path, monkeypatch):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "__init__.py").write_text("raise SystemExit(7)")
    (tmp_path / "conf" / "config.yaml").write_text("seed: 7")
    monkeypatch.chdir(tmp_path)
    assert train().seed == 42


def test_composing_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train()
    refusal("seed=abc")
    assert list(tmp_path.iterdir()) == []


def test_every_choice_of_every_group_is_valid():
    for group in ("strategy", "caps", "workflow", "sandbox", "cluster", "tracking", "evolution"):
        assert choices(group), group
        for name in choices(group):
            assert train(f"{group}={name}")


def test_the_seed_strategy_file_is_the_default_strategy():
    from rsi.budget import Caps
    from rsi.strategy import Strategy

    assert train().strategy == Strategy()
    assert train().caps == Caps()


def test_help_lists_groups_and_defaults():
    text = help_text("rsi.train", "config")
    assert "budget=fixed|smoke" in text and "sandbox=auto|bubblewrap|docker|process" in text
    assert "seed: 42" in text
    assert "budget" not in help_text("rsi.report", "report")


def test_no_configuration_file_is_without_a_reader():
    known = {"config", "evaluate", "export", "report"}
    assert {p.stem for p in CONF.glob("*.yaml")} == known


def test_a_cluster_keeps_two_rollouts_a_slot_submitted_unless_told():
    cores = os.cpu_count() or 1
    assert (ClusterSettings().workers, ClusterSettings().window) == (cores, 2 * cores)
    assert (ClusterSettings(slots=3).workers, ClusterSettings(slots=3).window) == (3, 6)
    told = train("cluster.slots=3", "cluster.in_flight=4").cluster
    assert (told.workers, told.window) == (3, 4)
