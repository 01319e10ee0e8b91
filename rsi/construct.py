"""Build a benchmark folder, or check one: `python -m rsi.construct`.

benchmark=panels path=FILE[,FILE] out=DIR   tasks from collected implementation panels
benchmark=kata out=DIR                      the embedded corpus
benchmark=folder path=DIR out=DIR           another folder again, with digests and counts
check DIR                                   read strictly, then run the verifier
"""

from __future__ import annotations

import itertools
import json
import os
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rsi.cli import run_command
from rsi.construct_table import print_funnel
from rsi.errors import BenchmarkError, SettingsError
from rsi.ports import Sandbox
from rsi.prism.build.from_panels import ConversionSettings, Item, confirm, convert
from rsi.prism.build.funnel import Stage, funnel_of
from rsi.prism.build.labels import Label
from rsi.prism.build.verify import contradictions, doubts, verify
from rsi.prism.corpus import load_kata
from rsi.prism.panel import Panel
from workers.dataset import Dataset, open_dataset
from workers.dataset_files import read_json_lines
from workers.dataset_write import About, Runs, check_replaceable, write_dataset
from workers.files import write_atomic
from workers.sandbox import SandboxName, choose_sandbox

USAGE = (__doc__ or "").partition("\n\n")[2]
PROGRESS_EVERY = 25
Labels = dict[str, Label]


class Arguments(BaseModel):
    """KEY=VALUE arguments: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sandbox: SandboxName = "auto"
    runs: int = Field(3, ge=1, le=20)
    seed: int = Field(42, ge=0, lt=2**31)


class BuildArguments(Arguments):
    """What a build takes; `limit` = 0 reads every record, `verify` runs the verifier on all."""

    benchmark: Literal["panels", "kata", "folder"]
    out: Path
    path: str = ""
    name: str = ""
    verify: bool = False
    limit: int = Field(0, ge=0)
    signal: Literal["train", "drop"] = "train"

    @model_validator(mode="after")
    def _source_is_named(self) -> BuildArguments:
        if (self.benchmark == "kata") == bool(self.path):
            raise ValueError("benchmark=panels and benchmark=folder need path=, kata takes none")
        return self


class CheckArguments(Arguments):
    """What a check takes: the folder, and on how many tasks the verifier runs."""

    folder: Path
    verify: Literal["sample", "all", "none"] = "sample"
    sample: int = Field(10, ge=1)


A = TypeVar("A", bound=Arguments)


def parse_arguments(model: type[A], words: Sequence[str], **given: Any) -> A:
    """Read KEY=VALUE words; raises SettingsError with one line naming key and choices."""
    values: dict[str, Any] = dict(given)
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key in given:
            raise SettingsError(f"{word!r}: arguments are KEY=VALUE; see --help")
        if key in values:
            raise SettingsError(f"{key}: given twice")
        values[key] = value
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise SettingsError(_line(error, model, set(given))) from None


def build(arguments: BuildArguments) -> int:
    """Build a folder with funnel.json and summary.json; raises BenchmarkError, writes nothing."""
    started = time.monotonic()
    check_replaceable(arguments.out)
    items, stages, runs = _gather(arguments)
    isolation = ""
    if arguments.verify and items:
        # the embedded corpus is our own code; anything else may be a language model's
        own = arguments.benchmark == "kata"
        sandbox, _ = choose_sandbox(arguments.sandbox, trusted=own)
        isolation = sandbox.isolation
        labels = dict(_verified([panel for _, panel in items], sandbox, arguments.runs))
        items, stage = confirm((item, labels[item[0].task_id]) for item in items)
        stages.append(stage)
        runs = {i: {n: label.runs for n, label in found.items()} for i, found in labels.items()}
    if not items:
        raise BenchmarkError(f"{arguments.path}: no task is left; {_reasons(stages)}")
    funnel = funnel_of(stages)
    index = write_dataset(
        arguments.out,
        items,
        arguments.name or arguments.benchmark,
        About(seed=arguments.seed, funnel={"stages": funnel["stages"]}),
        runs,
    )
    summary = {
        "benchmark": arguments.benchmark,
        "name": index.name,
        "tasks": len(items),
        "splits": index.splits,
        "implementations": sum(len(panel.implementations) for _, panel in items),
        "full_panels": sum(len(panel.implementations) > 2 for _, panel in items),
        "verified": arguments.verify,
        "isolation": isolation,
        "digest": index.digest,
        "stages": funnel["stages"],
        "seconds": round(time.monotonic() - started, 3),
    }
    _write(arguments.out / "funnel.json", funnel)
    _write(arguments.out / "summary.json", summary)
    print_funnel(stages, index.splits, arguments.out)
    return 0


def check(arguments: CheckArguments) -> int:
    """Print one line per fault of a folder; 1 when there is any, else 0."""
    try:
        dataset = open_dataset(arguments.folder)
    except BenchmarkError as error:
        print(error)
        return 1
    faults = 0
    bad = set()
    for task_id, line in dataset.faults():
        print(line)
        bad.add(task_id)
        faults += 1
    chosen = _chosen(dataset, bad, arguments)
    if chosen:
        panels = [dataset.load_panel(task_id) for task_id in chosen]
        by_id = {panel.task_id: panel for panel in panels}
        sandbox, _ = choose_sandbox(arguments.sandbox, trusted=False)
        for task_id, labels in _verified(panels, sandbox, arguments.runs):
            for line in _objections(by_id[task_id], labels):
                print(line)
                faults += 1
    print(f"{len(dataset.task_ids)} tasks read, {len(chosen)} verified, {faults} faults")
    return 1 if faults else 0


def _gather(arguments: BuildArguments) -> tuple[list[Item], list[Stage], Runs]:
    """The items of the source, what reading them dropped, and runs recorded with them."""
    limit = arguments.limit or None
    if arguments.benchmark == "kata":
        pairs = list(itertools.islice(load_kata(), limit))
        return pairs, [Stage(name="read", kept=len(pairs))], {}
    if arguments.benchmark == "folder":
        dataset = open_dataset(arguments.path)
        chosen = dataset.task_ids[:limit]
        found = [dataset.load_item(i) for i in chosen]
        stage = Stage(name="read", kept=len(found))
        return found, [stage], {i: dataset.load_runs(i) for i in chosen}
    settings = ConversionSettings(seed=arguments.seed, signal=arguments.signal)
    records = itertools.chain.from_iterable(map(read_json_lines, arguments.path.split(",")))
    items, stage = convert(itertools.islice(records, limit), settings)
    return items, [stage], {}


def _verified(panels: Sequence[Panel], sandbox: Sandbox, runs: int) -> Iterator[tuple[str, Labels]]:
    """Verify panels on all processors, in order, with a word on stderr now and then."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as threads:
        found = threads.map(lambda panel: verify(panel, sandbox, runs), panels)
        for done, (panel, labels) in enumerate(zip(panels, found, strict=True), 1):
            if done % PROGRESS_EVERY == 0:
                print(f"verified {done} of {len(panels)} tasks", file=sys.stderr)
            yield panel.task_id, labels


def _chosen(dataset: Dataset, bad: set[str], arguments: CheckArguments) -> tuple[str, ...]:
    good = [i for i in dataset.task_ids if i not in bad]
    if arguments.verify == "none":
        return ()
    if arguments.verify == "all" or len(good) <= arguments.sample:
        return tuple(good)
    return tuple(sorted(random.Random(arguments.seed).sample(good, arguments.sample)))


def _objections(panel: Panel, labels: Labels) -> Iterable[str]:
    if not panel.checks:
        return (f"{panel.task_id}: the verifier has no checks, so no label can be derived again",)
    return contradictions(panel, labels) + doubts(panel, labels)


def _write(path: Path, content: dict[str, Any]) -> None:
    write_atomic(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _reasons(stages: Sequence[Stage]) -> str:
    counts = [f"{n} {reason}" for stage in stages for reason, n in stage.reasons.items()]
    return ", ".join(counts) or "the source holds none"


def _line(error: ValidationError, model: type[Arguments], given: set[str]) -> str:
    # an unknown key first: it is most likely a misspelling of the one that is missing
    item = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
    key = ".".join(map(str, item["loc"]))
    if item["type"] == "extra_forbidden":
        allowed = ", ".join(name for name in model.model_fields if name not in given)
        return f"{key}: unknown key; allowed are {allowed}"
    if item["type"] == "missing":
        return f"{key}: missing; say {key}=VALUE"
    message = " ".join(item["msg"].removeprefix("Value error, ").split())
    return f"{key}: {message}, got {item['input']!r}" if key else message


def main() -> int:
    """Run the command line; raises SettingsError or BenchmarkError for the user's mistakes."""
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help", "help"):
        model_keys = ", ".join(BuildArguments.model_fields)
        check_keys = ", ".join(k for k in CheckArguments.model_fields if k != "folder")
        print(f"{USAGE}\nbuild keys: {model_keys}\ncheck keys: {check_keys}")
        return 0 if words else 2
    if words[0] == "check":
        if len(words) < 2 or "=" in words[1]:
            raise SettingsError("check: say which folder: python -m rsi.construct check DIR")
        asked = parse_arguments(CheckArguments, words[2:], folder=Path(words[1]))
        if not asked.folder.is_dir():
            raise SettingsError(f"check: {asked.folder}: not a folder")
        return check(asked)
    return build(parse_arguments(BuildArguments, words))


if __name__ == "__main__":
    run_command(main)
