"""Runs inside the sandbox: every check in a fresh child process, one result line per check.

Three generations keep the program away from the report: this process alone knows the run's key
and owns stdout; its child starts the checks; grandchildren run the program and can only answer
for their own check. Standard library only, because the sandbox has nothing else.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import resource
import secrets
import select
import signal
import sys
import time
from types import CodeType
from typing import Any

KEY_FILE = ".verifier-key"
PR_SET_DUMPABLE = 4
# imported once before the forks: programs ask for these most, and each costs milliseconds
PRELOADED = ("collections", "copy", "functools", "heapq", "itertools", "math", "re", "typing")
Codes = tuple[CodeType | str, CodeType | str]
LIBC = ctypes.CDLL(None)
PASS, FAIL, TIMEOUT, SKIPPED = b"pass", b"fail", b"timeout", b"skipped"


def main() -> int:
    """Print `<key> <index> <state>` for every job and `<key> end`; 0 when all were reported."""
    with open(os.path.join(os.environ["TP_SUBMISSION"], "jobs.json"), encoding="utf-8") as stream:
        plan = json.load(stream)
    # other processes of this user may not read the memory and descriptors of this one
    set_dumpable(False)
    go_reader, go_writer = os.pipe()
    reader, writer = os.pipe()
    starter = os.fork()
    if starter == 0:
        os.close(go_writer)
        os.close(reader)
        start_checks(plan, go_reader, writer)
    os.close(writer)
    # read after the fork and removed before any check starts: the key exists only here
    with open(KEY_FILE, "rb") as key_stream:
        key = key_stream.read()
    os.unlink(KEY_FILE)
    os.write(go_writer, b"g")
    with os.fdopen(reader, "rb") as results:
        lines = results.read().splitlines()
    for line in lines:
        sys.stdout.buffer.write(key + b" " + line + b"\n")
    _, status = os.waitpid(starter, 0)
    if status == 0:
        sys.stdout.buffer.write(key + b" end\n")
    sys.stdout.flush()
    return 0 if status == 0 else 1


def start_checks(plan: dict[str, Any], go: int, report: int) -> None:
    """Run the jobs one after the other and report `<index> <state>` lines; never returns."""
    try:
        os.read(go, 1)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        for module in PRELOADED:
            importlib.import_module(module)
        sys.dont_write_bytecode = True
        sys.path.insert(0, os.getcwd())
        gc.freeze()
        timeouts = 0
        prelude = compiled(plan["prelude"], "<prelude>")
        for index, job in enumerate(plan["jobs"]):
            codes = (prelude, compiled(job, "<check>"))
            state = SKIPPED if timeouts >= plan["max_timeouts"] else run_check(plan, codes, report)
            # the decoy repeats a check: its time-out must not move the point of skipping
            timeouts += state == TIMEOUT and index != plan["decoy"]
            os.write(report, b"%d %s\n" % (index, state))
    except BaseException:
        os._exit(1)
    os._exit(0)


def compiled(source: str, name: str) -> CodeType | str:
    """Compile once for all forks; what does not compile stays text and fails when executed."""
    try:
        return compile(source, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return source


def run_check(plan: dict[str, Any], codes: Codes, report: int) -> bytes:
    """Fork one check and give its state; only the token, written after its end, is a pass."""
    token = secrets.token_bytes(16)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(report)
        os.close(reader)
        be_checked(plan, codes, writer, token)
    os.close(writer)
    deadline = time.monotonic() + plan["wall_seconds"]
    answer, in_time = b"", True
    while len(answer) < len(token):
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        chunk = os.read(reader, len(token)) if ready else b""
        in_time = bool(ready)
        if not chunk:
            break
        answer += chunk
    status = end_child(child)
    os.close(reader)
    if answer == token:
        return PASS
    spent = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
    return TIMEOUT if spent or not in_time else FAIL


def be_checked(plan: dict[str, Any], codes: Codes, writer: int, token: bytes) -> None:
    """Execute prelude and check in this process; never returns."""
    try:
        os.setsid()
        set_dumpable(True)
        resource.setrlimit(resource.RLIMIT_AS, (plan["memory_bytes"],) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (plan["cpu_seconds"], plan["cpu_seconds"] + 1))
        space: dict[str, Any] = {"__name__": "verifier_check"}
        for code in codes:
            exec(code, space)
        os.write(writer, token)
    except BaseException:
        os._exit(1)
    os._exit(0)


def end_child(child: int) -> int:
    """Kill a check's process group, reap its leader and give the wait status."""
    for target in (-child, child):
        try:
            os.kill(target, signal.SIGKILL)
        except ProcessLookupError:
            continue
        except PermissionError:
            continue
    return os.waitpid(child, 0)[1]


def set_dumpable(allowed: bool) -> None:
    """Let other processes of the same user look into this one, or not."""
    LIBC.prctl(PR_SET_DUMPABLE, int(allowed), 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main())
