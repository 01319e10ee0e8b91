"""Run the corpus's own programs in this process, with a guard against endless loops.

Only for sources that this package generates: nothing a model wrote may come here.
"""

from __future__ import annotations

import builtins
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from rsi.prism.corpus.verifier_prelude import _eq

CALL_SECONDS = 0.5
Arguments = tuple[Any, ...]


class Overrun(BaseException):
    """A call used more than CALL_SECONDS; no `except Exception` in a program can stop it."""


@dataclass(frozen=True)
class Result:
    """What one call did: its value, or the name of its error; and whether arguments changed."""

    value: Any = None
    error: str = ""
    mutated: bool = False

    @property
    def key(self) -> str:
        return self.error or repr(self.value)

    def agrees(self, want: Result) -> bool:
        """Tell whether the verifier's check made of `want` passes on this result."""
        if want.error:
            return bool(self.error) and issubclass(_error(self.error), _error(want.error))
        return not self.error and _eq(self.value, want.value)


def _error(name: str) -> type[BaseException]:
    found = getattr(builtins, name, BaseException)
    return found if isinstance(found, type) else BaseException


def fresh(value: Any) -> Any:
    """Copy lists, tuples and dicts all the way down (JSON-like literals hold nothing else)."""
    if isinstance(value, list):
        return [fresh(item) for item in value]
    if isinstance(value, tuple):
        return tuple(fresh(item) for item in value)
    if isinstance(value, dict):
        return {key: fresh(item) for key, item in value.items()}
    return value


def mutable(value: Any) -> bool:
    """Tell whether a value holds something that a callee could change."""
    if isinstance(value, tuple):
        return any(map(mutable, value))
    return isinstance(value, list | dict)


def program(source: str, entry_point: str) -> Callable[..., Any]:
    """Compile one generated source and give its function."""
    namespace: dict[str, Any] = {"__name__": "solution"}
    exec(compile(source, "solution.py", "exec"), namespace)
    function: Callable[..., Any] = namespace[entry_point]
    return function


def call(function: Callable[..., Any], arguments: Arguments) -> Result:
    """Call with a fresh copy of the arguments; errors become part of the result."""
    given = fresh(arguments)
    try:
        value = function(*given)
    except Exception as error:  # any error of the program under observation is its result
        return Result(error=type(error).__name__, mutated=repr(given) != repr(arguments))
    return Result(value=fresh(value), mutated=repr(given) != repr(arguments))


def observe(source: str, entry_point: str, calls: Sequence[Arguments]) -> tuple[Result, ...]:
    """Run one program on all calls, guarded; raises Overrun when a call does not return."""
    function = program(source, entry_point)
    results = []
    for arguments in calls:
        with _deadline():
            results.append(call(function, arguments))
    return tuple(results)


@contextmanager
def _deadline() -> Iterator[None]:
    # virtual time: a busy machine cannot make a good program overrun, and SIGALRM stays free
    def stop(signum: int, frame: FrameType | None) -> None:
        raise Overrun

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, CALL_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
