"""The first process inside a sandbox: starts one command and says how it ended.

Its text is given to `python3 -I -S -c`, so it may import built-in modules only (8 ms in all).
It reports where the command does not: `started`, then `ended <wait status> <processes left>`;
or `failed <errno>` when the command could not be executed. It exits as the command did, which
lets the host notice a forged report. As the first process of a process namespace, all that is
left ends with it; without a namespace it adopts orphans and kills them itself.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # built in, signal itself is not
import posix
import resource
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # spelt so that nothing is imported at run time
    from collections.abc import Callable


def execute(command: list[str]) -> int:
    """Replace this process by the command, searched on PATH; gives the errno of the failure."""
    name = command[0]
    folders = [b""]
    if "/" not in name:
        folders = [p + b"/" for p in posix.environ.get(b"PATH", b"/usr/bin:/bin").split(b":") if p]
    failure = 2
    for folder in folders:
        try:
            posix.execve(folder + name.encode(), command, posix.environ)
        except OSError as error:
            if error.errno not in (2, 20) or failure == 2:
                failure = error.errno or 2
            if error.errno not in (2, 13, 20):
                break
    return failure


def child(report: int, processes: int, file_bytes: int, command: list[str]) -> None:
    """Set the limits of the command and become it; never returns."""
    try:
        for kind, limit in (
            (resource.RLIMIT_NPROC, processes or -1),
            (resource.RLIMIT_FSIZE, file_bytes),
            (resource.RLIMIT_NOFILE, 256),
            (resource.RLIMIT_CORE, 0),
        ):
            if limit >= 0:
                resource.setrlimit(kind, (limit, limit))
        for number in (13, 25):  # Python ignores SIGPIPE and SIGXFSZ; a command expects defaults
            _signal.signal(number, _signal.SIG_DFL)
        posix.write(report, b"%d" % execute(command))
    finally:
        posix._exit(127)


def guard() -> None:
    """Keep the command, which has our user id, from tracing us into a forged end."""
    import ctypes

    ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE; exec sets it again for the command


def adopt() -> None:
    """Become the parent of all orphans below, and end with the host's thread."""
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
    prctl(1, 15)  # PR_SET_PDEATHSIG, SIGTERM
    _signal.signal(15, lambda *_: bury(posix._exit))


def bury(then: Callable[[int], object]) -> None:
    """Kill children, and the orphans that become ours by it, until there are none."""
    me = posix.getpid()
    while True:
        with open(f"/proc/{me}/task/{me}/children", "rb") as listed:
            pids = [int(pid) for pid in listed.read().split()]
        for pid in pids:
            posix.kill(pid, 9)
        if not pids:
            break
        for _ in pids:
            posix.waitpid(-1, 0)
    then(143)


def count_left(processes: int) -> int:
    """Count the processes of this namespace; `processes` when a control group refused a fork."""
    for path in ("/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"):
        if posix.access(path, posix.R_OK):
            with open(path, "rb") as events:
                if events.read().split()[1:2] not in ([], [b"0"]):
                    return processes
    return sum(name.isdigit() for name in posix.listdir("/proc"))


def wait_for(pid: int) -> int:
    """Reap whatever ends until the command does; gives its wait status."""
    ended, how = posix.waitpid(-1, 0)
    while ended != pid:
        ended, how = posix.waitpid(-1, 0)
    return how


def main(argv: list[str]) -> int:
    """Run `report processes file_bytes command...`; `report` is a descriptor or a path.

    A negative number of processes says that a control group holds them, 0 that nobody does and
    that there is no process namespace.
    """
    own, processes = argv[0], int(argv[1])
    status = int(own) if own.isdigit() else posix.open(own, posix.O_WRONLY | posix.O_APPEND)
    posix.set_inheritable(status, False)
    if not posix.access(posix.environ[b"TP_OUT"], posix.F_OK):
        posix.mkdir(posix.environ[b"TP_OUT"])
    guard()
    if not processes:
        adopt()
    failed, report = posix.pipe()
    pid = posix.fork()
    if pid == 0:
        child(report, processes, int(argv[2]), argv[3:])
    posix.close(report)
    errno = posix.read(failed, 16)
    if errno:
        posix.write(status, b"failed %s\n" % errno)
        return 127
    posix.write(status, b"started\n")
    how = wait_for(pid)
    left = 0
    if processes:
        left = count_left(abs(processes))
    else:
        bury(lambda _: None)
    posix.write(status, b"ended %d %d\n" % (how, left))
    return posix.WEXITSTATUS(how) if posix.WIFEXITED(how) else 128 + posix.WTERMSIG(how)


if __name__ == "__main__":
    posix._exit(main(sys.argv[1:]))
