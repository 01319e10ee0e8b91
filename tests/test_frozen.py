"""A frozen file is whole or refused, and the altered section is named."""

from __future__ import annotations

import json

import pytest

from rsi.budget import Caps
from rsi.digest import digest_of
from rsi.errors import FrozenError
from rsi.frozen import SECTIONS, altered, differences, freeze, read_frozen, strategy_of
from rsi.strategy import Strategy


def document(**changes: object) -> dict[str, object]:
    strategy = Strategy(agent_steps=12)
    sections = {name: {} for name in SECTIONS} | {
        "strategy": strategy.to_json(),
        "strategyId": strategy.strategy_id,
        "caps": Caps().to_json(),
        "prompts": {"task": "abc"},
        "lineage": ["seed"],
        "runId": "r",
    }
    return freeze({**sections, **changes})


def test_a_fresh_file_is_whole_and_gives_its_strategy(tmp_path):
    path = tmp_path / "f.json"
    path.write_text(json.dumps(document()))
    assert strategy_of(read_frozen(path)) == Strategy(agent_steps=12)
    assert read_frozen(path)["strategy"]["agentSteps"] == 12


@pytest.mark.parametrize("section", SECTIONS)
def test_an_altered_section_is_named(section, tmp_path):
    made = document()
    made[section] = {"altered": 1}
    assert altered(made) == [section]
    path = tmp_path / "f.json"
    path.write_text(json.dumps(made))
    with pytest.raises(FrozenError, match=f"altered or damaged: {section}"):
        read_frozen(path)


def test_one_changed_number_is_found():
    made = document()
    made["strategy"]["agentSteps"] = 13
    assert altered(made) == ["strategy"]


def test_a_digest_that_was_fitted_to_an_altered_section_is_found():
    made = document()
    made["strategy"]["agentSteps"] = 13
    made["digests"]["strategy"] = digest_of(made["strategy"])
    assert altered(made) == ["digests"]
    made["digest"] = digest_of([1, made["digests"]])
    assert altered(made) == ["strategyId"]


def test_missing_and_unknown_keys_are_named():
    made = document()
    del made["caps"]
    made["extra"] = 1
    assert altered(made)[:2] == ["caps", "extra"]
    assert altered({}) == ["digests"]


def test_another_schema_version_is_named():
    made = document()
    made["schemaVersion"] = 2
    assert altered(made) == ["schemaVersion"]


@pytest.mark.parametrize(
    ("content", "said"), [("{", "not JSON"), ("[]", "a JSON object"), (None, "cannot be read")]
)
def test_what_is_no_frozen_file_is_one_line(tmp_path, content, said):
    path = tmp_path / "f.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(FrozenError, match=said):
        read_frozen(path)


def test_other_caps_and_prompts_are_listed():
    made = document()
    assert differences(made, Caps(), {"task": "abc"}) == []
    found = differences(made, Caps(model_calls=7), {"task": "xyz", "new": "1"})
    assert found == ["caps.modelCalls", "prompt new", "prompt task"]
    assert differences(made, Caps(), {}) == ["prompt task"], "one that is installed no more"


def test_freezing_needs_every_section():
    with pytest.raises(ValueError, match="sections differ"):
        freeze({"strategy": {}})
