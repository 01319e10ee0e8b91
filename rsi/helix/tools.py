"""The tools an agent may call, and what each does to its in-memory workspace."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rsi.errors import SubmissionError
from rsi.helix.wording import clean
from rsi.ports import Completed, Execution, ToolCall
from rsi.prism.task import Limits, Task
from rsi.prism.tree import Tree, check_path

# tool -> (what it does, its arguments, those that may be left out)
_TOOLS: dict[str, tuple[str, dict[str, str], frozenset[str]]] = {
    "list_files": (
        "List the files of the workspace with their sizes.",
        {"path": "a folder of the workspace"},
        frozenset({"path"}),
    ),
    "read_file": ("Read one file.", {"path": "a file of the workspace"}, frozenset()),
    "write_file": (
        "Write one whole file; a file that begins with #! becomes executable.",
        {"path": "a file of the workspace", "content": "its whole text"},
        frozenset(),
    ),
    "run": (
        "Run a shell command at the root of the workspace; the files it leaves are kept.",
        {"command": "a line for sh"},
        frozenset(),
    ),
    "submit": ("Hand in the workspace as it stands.", {}, frozenset()),
}
# directories and files that running leaves behind and nobody means to hand in
_LITTER_FOLDERS = frozenset({"__pycache__", ".pytest_cache", ".git"})
_ENTER = 'export TP_SUBMISSION="$PWD/{folder}" TP_PROGRAM_ROOT="$PWD" TP_OUT=/tmp; exec sh -c "$1"'

# one argument of a program may not be longer than 128 KiB on Linux
MAX_COMMAND_BYTES = 100_000


class Malformed(Exception):
    """A call that cannot be carried out; the text goes back to the model."""


@dataclass(frozen=True)
class Call:
    """A tool call whose name and arguments are what the tool wants."""

    name: str
    arguments: dict[str, str]


def tool_schemas() -> tuple[dict[str, Any], ...]:
    """The tools in the OpenAI function schema."""
    return tuple(
        {
            "type": "function",
            "function": {
                "name": name,
                "description": does,
                "parameters": {
                    "type": "object",
                    "properties": {
                        key: {"type": "string", "description": says}
                        for key, says in arguments.items()
                    },
                    "required": [key for key in arguments if key not in optional],
                },
            },
        }
        for name, (does, arguments, optional) in _TOOLS.items()
    )


def tool_lines() -> list[dict[str, str]]:
    """The tools as name, description and arguments in words, for the text protocol."""
    return [
        {
            "name": name,
            "description": does,
            "arguments": ", ".join(f"{key} ({says})" for key, says in arguments.items()) or "none",
        }
        for name, (does, arguments, _) in _TOOLS.items()
    ]


def parse_call(call: ToolCall) -> Call:
    """Read a tool call as the model wrote it; raises Malformed saying what is wrong with it."""
    if call.name not in _TOOLS:
        raise Malformed(f"there is no tool {call.name[:40]!r}; the tools are {', '.join(_TOOLS)}")
    _, known, optional = _TOOLS[call.name]
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        raise Malformed(
            f"the arguments of {call.name} are not a JSON object (perhaps cut off); send them again"
        ) from None
    if not isinstance(given, dict):
        raise Malformed(f"the arguments of {call.name} are not a JSON object")
    extra = sorted(set(given) - set(known))
    missing = [key for key in known if key not in given and key not in optional]
    wrong = [key for key in given if key in known and not isinstance(given[key], str)]
    for problem, names in (("unknown", extra), ("missing", missing), ("not text", wrong)):
        if names:
            raise Malformed(f"{call.name}: argument {names[0][:40]!r} is {problem}")
    return Call(call.name, given)


def list_files(workspace: Tree, folder: str) -> str:
    """One line a file: its path and size in bytes."""
    start = "" if folder in ("", ".", "./", "/") else _plain(folder).rstrip("/") + "/"
    lines = [
        f"{path} ({len(file.content)} bytes)"
        for path, file in sorted(workspace.files.items())
        if path.startswith(start)
    ]
    return "\n".join(lines) or "no files"


def read_file(workspace: Tree, path: str) -> str:
    """The text of one file; raises Malformed when there is none."""
    name = _plain(path)
    if name not in workspace.files:
        raise Malformed(f"there is no file {name!r}")
    return clean(workspace.files[name].content)


def write_file(workspace: Tree, path: str, content: str) -> Tree:
    """The workspace with one file set; raises Malformed for a path that cannot be one."""
    name = _plain(path)
    parents = {name[:i] for i, char in enumerate(name) if char == "/"}
    if parents & workspace.files.keys():
        raise Malformed(f"{name!r} lies below a file")
    if any(known.startswith(name + "/") for known in workspace.files):
        raise Malformed(f"{name!r} is a folder")
    body = content.encode("utf-8", "replace")
    bit = True if content.startswith("#!") else None
    try:
        return workspace.with_file(name, body, executable=bit)
    except SubmissionError as error:
        raise Malformed(str(error)) from None


def execution_of(task: Task, workspace: Tree, command: str, limits: Limits) -> Execution:
    """A shell command in a copy of the whole workspace, which comes back as it was left."""
    enter = _ENTER.format(folder=task.artifact_dir)
    try:
        return Execution(
            program=workspace,
            argv=("sh", "-c", enter, "run", _one_argument(command)),
            limits=limits,
            collect=True,
        )
    except ValueError:
        raise Malformed("the command is not one that can be run") from None


def report_of(done: Completed) -> str:
    """What a command did, in the words a model reads."""
    if done.killed_by is not None:
        head = f"killed: it passed the {done.killed_by} limit"
    elif done.exit_code is None:
        head = f"ended by signal {done.signal}" if done.started else "could not be started"
    else:
        head = f"exit status {done.exit_code}"
    streams = (("stdout", clean(done.stdout)), ("stderr", clean(done.stderr)))
    return "\n".join([head, *(f"{name}:\n{text.rstrip()}" for name, text in streams if text)])


def tidy(tree: Tree) -> Tree:
    """A collected workspace without the caches that running leaves behind."""
    return tree.without(
        path
        for path in tree.files
        if path.endswith(".pyc") or _LITTER_FOLDERS.intersection(path.split("/")[:-1])
    )


def _plain(path: str) -> str:
    name = path.removeprefix("./")
    try:
        name.encode()
        check_path(name.rstrip("/"))
    except (SubmissionError, UnicodeEncodeError):
        raise Malformed(f"{clean(path)[:80]!r} is not a path inside the workspace") from None
    return name


def _one_argument(command: str) -> str:
    if "\0" in command:
        raise Malformed("the command holds a NUL character")
    if len(command.encode("utf-8", "replace")) > MAX_COMMAND_BYTES:
        raise Malformed(
            f"the command is longer than {MAX_COMMAND_BYTES} bytes; write a file and run that"
        )
    return command.encode("utf-8", "replace").decode()
