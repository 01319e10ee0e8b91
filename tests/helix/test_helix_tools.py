"""Tools on the workspace, and how calls travel in either protocol."""

from __future__ import annotations

import json

import pytest

from rsi.helix.protocol import MAX_CALLS_A_REPLY, answered, calls_of, spoken
from rsi.helix.tools import (
    Malformed,
    execution_of,
    list_files,
    parse_call,
    read_file,
    report_of,
    tidy,
    tool_schemas,
    write_file,
)
from rsi.ports import Completed, ToolCall
from rsi.prism.task import Limits
from rsi.prism.tree import Tree
from tests.helix.helix_world import word_task
from workers.fakes import says

TREE = Tree.of({"a.py": "one", "lib/b.py": "four", "run.sh": "#!/bin/sh\n"}, executable=["run.sh"])


def call(name: str, arguments: str) -> ToolCall:
    return ToolCall(call_id="c", name=name, arguments=arguments)


def test_the_schema_names_the_five_tools_and_what_they_need() -> None:
    needed = {
        s["function"]["name"]: s["function"]["parameters"]["required"] for s in tool_schemas()
    }
    assert needed == {
        "list_files": [],
        "read_file": ["path"],
        "write_file": ["path", "content"],
        "run": ["command"],
        "submit": [],
    }


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("delete", "{}", "there is no tool 'delete'"),
        ("run", '{"command": "ls', "not a JSON object (perhaps cut off)"),
        ("run", '["ls"]', "not a JSON object"),
        ("run", "{}", "'command' is missing"),
        ("run", '{"command": 3}', "'command' is not text"),
        ("run", '{"command": "ls", "force": "1"}', "'force' is unknown"),
        ("write_file", '{"path": "a"}', "'content' is missing"),
        ("run", "[" * 100_000, "not a JSON object"),
    ],
)
def test_a_bad_call_is_refused_with_the_reason(name: str, arguments: str, says: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse_call(call(name, arguments))
    assert says in str(refused.value)


def test_arguments_that_may_be_left_out_may_be() -> None:
    assert parse_call(call("list_files", "")).arguments == {}
    assert parse_call(call("submit", "{}")).name == "submit"


def test_listing_gives_paths_with_sizes_below_a_folder() -> None:
    assert list_files(TREE, "") == "a.py (3 bytes)\nlib/b.py (4 bytes)\nrun.sh (10 bytes)"
    assert list_files(TREE, ".") == list_files(TREE, "")
    assert list_files(TREE, "lib/") == list_files(TREE, "./lib") == "lib/b.py (4 bytes)"
    assert list_files(TREE, "li") == "no files"


def test_reading_gives_the_text_or_says_that_there_is_none() -> None:
    assert read_file(TREE, "./lib/b.py") == "four"
    with pytest.raises(Malformed, match=r"there is no file 'c\.py'"):
        read_file(TREE, "c.py")


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "a/../../x", "", "a\nb", "x\ud800", "a\\b"]
)
def test_paths_outside_the_workspace_are_refused(path: str) -> None:
    for act in (lambda: read_file(TREE, path), lambda: write_file(TREE, path, "x")):
        with pytest.raises(Malformed, match="not a path inside the workspace"):
            act()


def test_writing_sets_one_file_and_the_bit_of_a_script() -> None:
    written = write_file(TREE, "submission/run_tests.sh", "#!/bin/sh\nexit 1\n")
    assert written.files["submission/run_tests.sh"].executable
    assert written.without(["submission/run_tests.sh"]) == TREE
    assert not write_file(TREE, "c.py", "x = 1").files["c.py"].executable
    assert write_file(TREE, "run.sh", "echo").files["run.sh"].executable
    assert write_file(TREE, "c.py", "a\ud800").text("c.py") == "a?"


def test_a_file_cannot_lie_below_a_file_nor_replace_a_folder() -> None:
    with pytest.raises(Malformed, match="below a file"):
        write_file(TREE, "a.py/x", "")
    with pytest.raises(Malformed, match="is a folder"):
        write_file(TREE, "lib", "")


def test_a_command_runs_on_the_whole_workspace_and_it_comes_back() -> None:
    limits = Limits(wall_seconds=3)
    execution = execution_of(word_task(), TREE, "ls -l", limits)
    assert execution.program == TREE
    assert execution.submission is None
    assert execution.collect
    assert execution.limits == limits
    assert execution.argv[:2] == ("sh", "-c")
    assert execution.argv[-1] == "ls -l"
    for setting in ('TP_SUBMISSION="$PWD/submission"', 'TP_PROGRAM_ROOT="$PWD"', "TP_OUT=/tmp"):
        assert setting in execution.argv[2]
    with pytest.raises(Malformed, match="NUL"):
        execution_of(word_task(), TREE, "a\0b", limits)


def test_a_report_says_how_a_command_ended() -> None:
    def report(**seen: object) -> str:
        return report_of(Completed.model_validate({"isolation": "process", **seen}))

    assert report(exit_code=3, stdout=b"out\n", stderr=b"err\n") == (
        "exit status 3\nstdout:\nout\nstderr:\nerr"
    )
    assert report(exit_code=0) == "exit status 0"
    assert report(exit_code=None, signal=11) == "ended by signal 11"
    assert report(exit_code=None, signal=9, killed_by="wall") == "killed: it passed the wall limit"
    assert report(exit_code=None, started=False) == "could not be started"


def test_caches_are_not_kept_in_the_workspace() -> None:
    litter = ["__pycache__/a.pyc", "x/__pycache__/b", ".pytest_cache/v/c", "d.pyc", ".git/HEAD"]
    assert tidy(Tree.of({**dict.fromkeys(litter, "x"), "keep.py": "", "a/.gitignore": ""})) == (
        Tree.of({"keep.py": "", "a/.gitignore": ""})
    )


def test_native_calls_are_bounded_named_and_answered_by_id() -> None:
    many = [ToolCall(call_id="", name="ru n!", arguments="{") for _ in range(20)]
    found = calls_of(says("", *many), native=True)
    assert len(found) == MAX_CALLS_A_REPLY == 8
    assert found[1] == ToolCall(call_id="call_1", name="ru_n_", arguments="{")
    (long,) = calls_of(says("", ToolCall(call_id="x", name="n" * 99, arguments="")), native=True)
    assert long.name == "n" * 64
    message = spoken(says("text", *many), found, native=True)
    assert [c.arguments for c in message.tool_calls] == ["{}"] * 8
    result = answered(found[1], "done", native=True)
    assert (result.role, result.tool_call_id, result.content) == ("tool", "call_1", "done")


def test_the_text_protocol_takes_the_first_block_even_with_fences_inside() -> None:
    content = "# doc\n```\ncode\n```\n"
    block = json.dumps({"tool": "write_file", "arguments": {"path": "a.md", "content": content}})
    reply = says(f'I write.\n```tool\n{block}\n```\n```tool\n{{"tool": "submit"}}\n```')
    (found,) = calls_of(reply, native=False)
    assert parse_call(found).arguments == {"path": "a.md", "content": content}
    assert spoken(reply, (found,), native=False).tool_calls == ()
    result = answered(found, "ok", native=False)
    assert (result.role, result.content) == ("user", "Result of write_file:\n\n```\nok\n```")


@pytest.mark.parametrize("body", ['{"tool": "run", "argu', "run ls", '["run"]', '{"name": "run"}'])
def test_a_broken_block_is_a_call_that_is_refused(body: str) -> None:
    (found,) = calls_of(says(f"```tool\n{body}\n```"), native=False)
    with pytest.raises(Malformed):
        parse_call(found)


def test_text_without_a_block_is_no_call() -> None:
    assert calls_of(says("done ```python\nx\n```"), native=False) == ()
