"""Every error the product raises on purpose.

    RsiError
    ├── UserError                 the user can mend it: one line, exit code 2
    │   ├── SettingsError         a command line or configuration value
    │   ├── BenchmarkError        a task folder or panel on disk
    │   ├── SubmissionError       a suite that is not a valid submission
    │   ├── StrategyError         a strategy outside its bounds, or with unknown fields
    │   ├── FrozenError           a frozen strategy file that was altered or does not fit
    │   ├── RunConflict           a run directory that is in use, or whose inputs changed
    │   └── ModelRefused          the endpoint refuses for good: wrong key, name or request
    ├── LimitReached              a cap or budget has no room for the reservation
    └── InfrastructureError       retryable: the world failed, not the program under test
        ├── SandboxFailure        the sandbox could not run or observe a cell
        ├── ModelUnavailable      the endpoint did not answer, or answered with a server error
        └── WorkerLost            a worker process died while it held a rollout

All carry a message only, so they survive pickling between Ray processes.
"""

from __future__ import annotations


class RsiError(Exception):
    """Any error raised on purpose; `str(error)` is one line with what, where and what to do."""

    retryable = False
    exit_code = 1


class UserError(RsiError):
    exit_code = 2


class SettingsError(UserError):
    pass


class BenchmarkError(UserError):
    pass


class SubmissionError(UserError):
    pass


class StrategyError(UserError):
    pass


class FrozenError(UserError):
    pass


class RunConflict(UserError):
    pass


class ModelRefused(UserError):
    pass


class LimitReached(RsiError):
    """A reservation that would pass a ceiling; the message is the ceiling's name."""

    @property
    def limit(self) -> str:
        return str(self.args[0]) if self.args else "unknown"


class InfrastructureError(RsiError):
    retryable = True


class SandboxFailure(InfrastructureError):
    pass


class ModelUnavailable(InfrastructureError):
    """The endpoint failed; `retry_after_s` is what it asked for, when it said so."""

    def __init__(self, message: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message, retry_after_s)
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return str(self.args[0])


class WorkerLost(InfrastructureError):
    pass
