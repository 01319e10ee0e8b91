"""Merging compatible suites and verifying the whole in fresh environments."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rsi.budget import Caps
from rsi.errors import LimitReached
from rsi.helix.crossval import Peers
from rsi.helix.merge import Part, best_single, combined, compatible, fault_of, merge, twin_of
from rsi.prism.suite import Suite
from rsi.prism.tree import Tree
from rsi.records import Drop, Workflow
from tests.helix.helix_world import job, word_pair, word_suite, word_task
from tests.helix.test_helix_crossval import table_of
from workers.fakes import InstantSandbox, ScriptedModel

MENDED = Tree.of({"solution.py": "doubled\n"})
NEAT = Tree.of({"solution.py": "doubled neat\n"})
FAIR = Part("suite_1", word_suite("wants doubled"))
SAME = Part("suite_2", word_suite("wants doubled"))
OTHER = Part("suite_2", word_suite("bans start"))
STRICT = Part("suite_3", word_suite("wants doubled", "wants neat"))
FLAKY = Part("suite_3", word_suite("wants doubled", "flips"))
LOOSE = Part("challenge", word_suite("bans tripled"), must_reject=False)


def sandbox_of(one: object) -> InstantSandbox:
    return one.sandbox  # type: ignore[attr-defined,no-any-return]


async def test_compatible_suites_become_one_that_is_verified() -> None:
    one = job([ScriptedModel()])
    suite, dropped = await merge(one, [FAIR, OTHER], [MENDED, NEAT])
    assert suite == combined([FAIR, OTHER], "run_tests.sh")
    assert dropped == []
    cells = [(e.program.digest, e.submission == suite.tree) for e in sandbox_of(one).executions]
    given = one.task.program
    runs = [given.digest, MENDED.digest, NEAT.digest]
    assert cells == [(d, True) for d in [*runs, *runs, twin_of(given).digest]]


@pytest.mark.parametrize("runs", [1, 3])
async def test_each_verification_run_is_a_fresh_one(runs: int) -> None:
    one = job([ScriptedModel()], workflow=Workflow(agents=1, verify_runs=runs))
    await merge(one, [FAIR], [MENDED])
    assert len(sandbox_of(one).executions) == 2 * runs + 1


async def test_a_single_suite_is_submitted_as_it_is() -> None:
    suite, _ = await merge(job([ScriptedModel()]), [FAIR], [MENDED])
    assert suite == FAIR.suite


async def test_equal_suites_are_merged_once() -> None:
    suite, dropped = await merge(job([ScriptedModel()]), [FAIR, SAME], [MENDED])
    assert suite == FAIR.suite
    assert dropped == [Drop(what="suite_2", reason="same files as suite_1")]


async def test_an_over_strict_suite_is_dropped_from_the_merge() -> None:
    suite, dropped = await merge(job([ScriptedModel()]), [FAIR, STRICT], [NEAT, MENDED])
    assert suite == FAIR.suite
    assert dropped == [Drop(what="suite_3", reason="gave REJECT on repair 2 in run 1")]


async def test_a_flaky_suite_is_dropped() -> None:
    one = job([ScriptedModel()], workflow=Workflow(agents=1, verify_runs=4))
    suite, dropped = await merge(one, [FAIR, FLAKY], [MENDED])
    assert suite == FAIR.suite
    assert [d.what for d in dropped] == ["suite_3"]


async def test_a_suite_that_recognises_the_given_program_is_dropped() -> None:
    given = word_task().program.digest

    def decide(execution: object) -> int:
        suite = execution.submission.text("run_tests.sh")  # type: ignore[attr-defined]
        program = execution.program  # type: ignore[attr-defined]
        fair = "doubled" not in program.text("solution.py")
        return int(fair if "run " in suite or "doubled" in suite else program.digest == given)

    hashes = Part("suite_1", word_suite("is b"))
    one = job([ScriptedModel()], sandbox=InstantSandbox(decide))
    suite, dropped = await merge(one, [hashes], [MENDED])
    assert suite is None
    assert dropped == [Drop(what="suite_1", reason="gave ACCEPT on a twin of the given program")]


async def test_suites_that_are_sound_alone_but_not_together_lose_the_last() -> None:
    def decide(execution: object) -> int:
        suite = execution.submission.text("run_tests.sh")  # type: ignore[attr-defined]
        program = execution.program.text("solution.py")  # type: ignore[attr-defined]
        return int("run suite_" in suite or "doubled" not in program)

    one = job([ScriptedModel()], sandbox=InstantSandbox(decide))
    suite, dropped = await merge(one, [FAIR, OTHER], [MENDED])
    assert suite == FAIR.suite
    assert dropped == [Drop(what="suite_2", reason="merged suite gave REJECT on repair 1 in run 1")]


async def test_a_challenge_joins_but_does_not_stand_alone() -> None:
    one = job([ScriptedModel()])
    suite, dropped = await merge(one, [FAIR, LOOSE], [MENDED])
    assert suite is not None
    assert "challenge/run_tests.sh" in suite.tree.files
    assert dropped == []
    assert await merge(one, [LOOSE], [MENDED]) == (None, [])


async def test_a_challenge_that_contradicts_a_repair_is_dropped() -> None:
    wrong = Part("challenge", word_suite("wants neat"), must_reject=False)
    suite, dropped = await merge(job([ScriptedModel()]), [FAIR, wrong], [MENDED])
    assert suite == FAIR.suite
    assert [d.what for d in dropped] == ["challenge"]


async def test_nothing_verified_is_none_with_all_reasons() -> None:
    suite, dropped = await merge(job([ScriptedModel()]), [STRICT], [MENDED])
    assert suite is None
    assert dropped == [Drop(what="suite_3", reason="gave REJECT on repair 1 in run 1")]


async def test_a_cap_is_raised_to_the_workflow() -> None:
    with pytest.raises(LimitReached, match="sandbox_seconds"):
        await merge(job([ScriptedModel()], caps=Caps(sandbox_seconds=5)), [FAIR], [MENDED])


async def test_a_suite_too_deep_to_merge_is_given_up() -> None:
    deep = word_suite("wants doubled").tree.with_file("/".join("x" * 24), "")
    suite, dropped = await merge(
        job([ScriptedModel()]), [FAIR, Part("suite_2", Suite(tree=deep))], [MENDED]
    )
    assert suite == FAIR.suite
    assert "cannot be built" in dropped[0].reason


async def test_suites_too_large_together_lose_the_last() -> None:
    def large(name: str) -> Part:
        files = {f"{name}{n}": "" for n in range(1_100)}
        tree = word_suite("wants doubled").tree
        return Part(name, Suite(tree=Tree(files={**tree.files, **Tree.of(files).files})))

    one, two = large("suite_1"), large("suite_2")
    suite, dropped = await merge(job([ScriptedModel()]), [one, two], [MENDED])
    assert suite == one.suite
    assert [d.what for d in dropped] == ["suite_2"]
    assert "at most 2000 files" in dropped[0].reason


async def test_the_given_program_has_to_be_rejected() -> None:
    one = job([ScriptedModel()])
    lax = word_suite("bans tripled")
    assert await fault_of(one, lax, [MENDED]) == "gave ACCEPT on the given program in run 1"
    assert await fault_of(one, lax, [MENDED], must_reject=False) == ""


def test_a_twin_behaves_alike_and_differs_in_every_python_file() -> None:
    given = Tree.of({"a.py": "x = 1", "run.sh": "ls"}, executable=["run.sh"])
    twin = twin_of(given)
    assert twin.files["run.sh"] == given.files["run.sh"]
    assert twin.text("a.py") == "x = 1\n# end of file\n"
    assert twin_of(Tree.of({"a.go": ""})) == Tree.of({"a.go": ""})


@pytest.mark.parametrize(
    ("rows", "suites", "repairs"),
    [
        (("AAA", "AAA", "AAA"), [0, 1, 2], [0, 1, 2]),
        (("ARA", "AAA", "AAA"), [1, 2], [0, 1, 2]),  # repairs before suites
        (("AR", "RA"), [0], [0]),
        (("ARR", "AAA", "ARA"), [1], [0, 1, 2]),
        (("ARR", "AAR", "RAA"), [1], [0, 1]),
        (("A",), [0], [0]),
        ((".",), [], []),
        (("A..", ".A.", "..A"), [0], [0]),
    ],
)
def test_the_largest_agreement_is_merged(
    rows: tuple[str, ...], suites: list[int], repairs: list[int]
) -> None:
    everyone = list(range(len(rows)))
    peers = Peers([], table_of(*rows), everyone, everyone)  # type: ignore[arg-type]
    assert compatible(peers) == (suites, repairs)


def test_only_suites_and_repairs_still_in_can_agree() -> None:
    peers = Peers([], table_of("AAA", "AAA", "AAA"), [1, 2], [2])  # type: ignore[arg-type]
    assert compatible(peers) == ([1, 2], [2])
    assert compatible(Peers([], table_of("AA", "AA"), [], [1])) == ([], [])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "spoiled", "best"),
    [
        (("ARR", "AAR", "RRA"), set(), 1),
        (("ARR", "AAR", "RRA"), {1}, 0),
        (("AR", "RA"), set(), 0),
        (("AA", "AA"), {0}, 1),
        (("AR", "AA"), {0, 1}, 1),
        (("A.", "AA"), set(), 1),
    ],
)
def test_the_best_single_pair_accepts_most_peers(
    rows: tuple[str, ...], spoiled: set[int], best: int
) -> None:
    pairs = [word_pair(slot, ["wants x"], "x") for slot in range(len(rows))]
    peers = Peers(pairs, table_of(*rows), [], [])  # type: ignore[arg-type]
    assert best_single(peers, frozenset(spoiled)) == best


@pytest.mark.parametrize(
    ("exits", "status"), [((0, 0, 0), 0), ((0, 3, 0), 1), ((1, 0, 0), 1), ((0, 0, 9), 1)]
)
def test_the_merged_script_runs_each_suite_in_its_own_folder(
    tmp_path: Path, exits: tuple[int, ...], status: int
) -> None:
    def part(number: int, code: int) -> Part:
        script = f'#!/bin/sh\ncat "$TP_SUBMISSION/name"\n: > "$TP_OUT/seen"\nexit {code}\n'
        tree = Tree.of({"run_tests.sh": script, "name": f"{number} "}, executable=["run_tests.sh"])
        return Part(f"suite_{number}", Suite(tree=tree))

    suite = combined([part(n, code) for n, code in enumerate(exits, 1)], "run_tests.sh")
    assert suite.fault() is None
    for path, file in suite.tree.files.items():
        target = tmp_path / "my suite" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(0o755 if file.executable else 0o644)
    done = subprocess.run(
        [tmp_path / "my suite" / "run_tests.sh"],
        env={
            **os.environ,
            "TP_SUBMISSION": str(tmp_path / "my suite"),
            "TP_OUT": str(tmp_path / "out"),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    ran = [n for n in range(1, 4) if not any(exits[: n - 1])]
    assert done.returncode == status
    assert done.stdout.split() == [str(n) for n in ran]
    assert sorted(p.parent.name for p in (tmp_path / "out").rglob("seen")) == [
        f"suite_{n}" for n in ran
    ]
