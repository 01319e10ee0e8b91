"""What a command finds usable before anything is written, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from rsi import assembly
from rsi.budget import Caps
from rsi.compose import load
from rsi.errors import BenchmarkError, SettingsError
from rsi.prism.outcome import Kind
from rsi.prism.panel import Implementation, Panel
from rsi.prism.tree import Tree
from rsi.settings import TrainSettings
from rsi.train import check_plan, inputs_of, resume_command
from tests.builders import task
from workers.benchmark import BenchmarkSettings, open_benchmark
from workers.dataset_write import write_dataset
from workers.llm import ModelProfile


def settings(*argv: str) -> TrainSettings:
    return load("config", TrainSettings, ["+budget=smoke", "sandbox=process", *argv])


@pytest.fixture(scope="module")
def scene() -> assembly.Scene:
    return assembly.prepare(settings())


def panel(task_id: str) -> Panel:
    kinds: tuple[tuple[str, Kind], ...] = (("b", "initial"), ("g", "reference"))
    return Panel(
        task_id=task_id,
        implementations=tuple(
            Implementation(
                implementation_id=name,
                kind=kind,
                program=Tree.of(
                    {"solution.py": "def f(x):\n    return x\n" * (1 if name == "b" else 2)}
                ),
            )
            for name, kind in kinds
        ),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one task per split."""
    items = [
        (task(f"{split}-1", split=split, family=split), panel(f"{split}-1"))
        for split in ("train", "selection", "release", "test")
    ]
    write_dataset(tmp_path / "own", items, "own")
    return tmp_path / "own"


def test_a_scene_says_tasks_and_sandbox(scene):
    assert scene.notes[0] == "tasks: kata (train 96, selection 24, test 48)"
    assert scene.notes[1].startswith("sandbox=process")
    assert scene.spec.sandbox == "process"


def test_a_folder_is_read_and_its_broken_task_is_left_out_and_named(folder):
    (folder / "tasks" / "train-1" / "instruction.md").unlink()
    found = open_benchmark(BenchmarkSettings(name="folder", path=str(folder)))
    assert sorted(found.tasks) == ["release-1", "selection-1", "test-1"]
    assert len(found.broken) == 1 and "train-1" in found.broken[0]
    with pytest.raises(SettingsError, match="split train has no usable task"):
        assembly.need_tasks(found, "selection", "train")


def test_a_missing_folder_is_one_line():
    with pytest.raises(BenchmarkError, match="/nowhere"):
        open_benchmark(BenchmarkSettings(name="folder", path="/nowhere"))


def test_split_digests_see_the_panel(folder):
    kata = open_benchmark(BenchmarkSettings()).split_digests()
    own = open_benchmark(BenchmarkSettings(name="folder", path=str(folder))).split_digests()
    assert set(kata) == {"train", "selection", "release", "test"}
    assert len({*kata.values(), *own.values()}) == 8


@pytest.mark.parametrize(
    "argv",
    [
        ("model=openai/any",),
        ("benchmark=folder", "benchmark.path={folder}"),
    ],
)
def test_auto_may_fall_to_processes_for_the_embedded_model_and_tasks_only(
    argv, folder, monkeypatch
):
    asked = []

    def choose(name: str, *, trusted: bool) -> object:
        asked.append(trusted)
        raise SettingsError("enough")

    monkeypatch.setattr(assembly, "choose_sandbox", choose)
    for extra in ((), tuple(a.format(folder=folder) for a in argv)):
        with pytest.raises(SettingsError, match="enough"):
            assembly.prepare(load("config", TrainSettings, ["+budget=smoke", *extra]))
    assert asked == [True, False]


def test_a_budget_that_is_too_small_is_refused_with_the_count_of_each_part(scene):
    assert check_plan(settings(), scene) <= settings().budget.rollouts
    with pytest.raises(SettingsError, match=r"budget.rollouts: 3 is too small .* needs \d+ .trace"):
        check_plan(settings("budget.rollouts=3"), scene)


def test_the_standard_plan_fits_its_budget(scene):
    fixed = load("config", TrainSettings, ["+budget=fixed"])
    assert check_plan(fixed, scene) <= fixed.budget.rollouts


@pytest.mark.parametrize(
    "argument",
    [
        "seed=1",
        "strategy.agentSteps=9",
        "caps.model_calls=9",
        "budget.rollouts=44",
        "evolution.alpha=0.04",
        "workflow=single",
        "model.temperature=0.5",
    ],
)
def test_every_input_that_matters_makes_another_run(scene, argument):
    before, after = settings(), settings(argument)
    spec = scene.spec.updated(
        seed=after.seed, caps=after.caps, workflow=after.workflow, models=after.profiles
    )
    other = assembly.Scene(scene.benchmark, spec, ())
    assert inputs_of(before, scene) != inputs_of(after, other)


@pytest.mark.parametrize("argument", ["runs_dir=x", "run_id=y", "tracking=none", "cluster=threads"])
def test_where_a_run_is_played_and_shown_makes_no_other_run(scene, argument):
    assert inputs_of(settings(), scene) == inputs_of(settings(argument), scene)


def test_the_dearest_slot_bounds_the_dollars_of_a_rollout():
    models = (
        ModelProfile(name="a", model="x/a", input_usd_per_million=1, output_usd_per_million=2),
        ModelProfile(name="b", model="x/b", input_usd_per_million=3, output_usd_per_million=1),
    )
    caps = Caps(input_tokens=1_000_000, output_tokens=500_000)
    assert assembly.most_usd(caps, models) == 3.5


def test_tracking_defaults_to_a_file_in_the_runs_directory(tmp_path):
    assert assembly.tracking_uri("", tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"
    assert assembly.tracking_uri("http://h:1", tmp_path) == "http://h:1"


def test_the_command_that_resumes_keeps_every_setting_and_names_the_run():
    line = resume_command(["+budget=smoke", "run_id=old", "runs_dir=a b"], "new")
    assert line.endswith("-m rsi.train +budget=smoke 'runs_dir=a b' run_id=new")
