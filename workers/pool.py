"""Where rollouts run: the port, and Ray behind it.

A pool plays each submitted rollout once and tells how that went; whether to try again is for
its caller, who has to account for every attempt.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

from rsi.errors import RsiError, SettingsError, WorkerLost
from rsi.records import Rollout, RolloutRequest
from workers.quiet import quiet

log = logging.getLogger(__name__)

Spec = TypeVar("Spec")
Play = Callable[[Spec, RolloutRequest], Rollout]

_START_ATTEMPTS = 3
_PREFLIGHT_S = 3.0
_SOFT_CANCEL_S = 2.0
_NAMESPACE = "testhelix-rsi"


@dataclass(frozen=True)
class Attempt:
    """How one submitted rollout went: the rollout, or what it raised.

    An InfrastructureError means that the world failed it and another try is worthwhile.
    """

    request: RolloutRequest
    result: Rollout | BaseException


class RolloutPool(Protocol):
    """Plays rollouts in parallel, at most `window` submitted at a time.

    `collect` waits at most `timeout_s` for the first result and gives all that are there, each
    once. `cancel` gives up all that was submitted within seconds; the pool can be used again.
    """

    @property
    def window(self) -> int: ...

    def submit(self, request: RolloutRequest) -> None: ...

    def collect(self, timeout_s: float) -> list[Attempt]: ...

    def cancel(self) -> None: ...


class RayPool:
    """Rollouts as Ray tasks without Ray's own retries, on our own cluster or a named one.

    `address` is `local` (started here, stopped by `close`) or HOST:PORT of a running cluster,
    whose workers must have this package installed. `play` is a module-level function; `spec`
    is shipped once. Raises SettingsError when the cluster cannot be reached or has no CPU.
    """

    def __init__(
        self, play: Play[Spec], spec: Spec, slots: int, in_flight: int, address: str = "local"
    ) -> None:
        if slots < 1 or in_flight < 1:
            raise SettingsError(f"cluster: slots={slots}, in_flight={in_flight}; both must be >= 1")
        quiet()
        self._ray = _connect(address, slots)
        self._window = in_flight
        self._spec = self._ray.put(spec)
        # a second execution would spend without being counted, so Ray may not retry
        self._task = self._ray.remote(num_cpus=1, max_retries=0)(play)
        self._running: dict[Any, RolloutRequest] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def window(self) -> int:
        return self._window

    def submit(self, request: RolloutRequest) -> None:
        """Hand one rollout to the cluster; raises WorkerLost when the cluster is gone."""
        try:
            reference = self._task.remote(self._spec, request)
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            raise WorkerLost(f"the Ray cluster is gone: {_first_line(error)}") from error
        self._running[reference] = request

    def collect(self, timeout_s: float) -> list[Attempt]:
        """Give finished rollouts; see RolloutPool."""
        if not self._running:
            return []
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=timeout_s)
        if ready:
            waiting = list(self._running)
            ready, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=0)
        return [Attempt(self._running.pop(done), self._result(done)) for done in ready]

    def cancel(self) -> None:
        """Interrupt what runs, then kill what does not stop; results are thrown away."""
        references = list(self._running)
        self._running.clear()
        if not references or not self._ray.is_initialized():
            return
        for force in (False, True):
            for reference in references:
                # a task that just ended, or a cluster that is gone, needs no cancelling
                with contextlib.suppress(self._ray.exceptions.RayError, ValueError):
                    self._ray.cancel(reference, force=force)
            _, references = self._ray.wait(
                references, num_returns=len(references), timeout=_SOFT_CANCEL_S
            )
            if not references:
                return

    def close(self) -> None:
        """Cancel what runs and leave the cluster; one that we started stops."""
        self.cancel()
        self._ray.shutdown()

    def _result(self, reference: Any) -> Rollout | BaseException:
        gone = self._ray.exceptions
        try:
            result: Rollout = self._ray.get(reference)
        except gone.RayTaskError as error:
            # ours as they were raised; a bug keeps Ray's wrapping, which shows where it was
            return error.cause if isinstance(error.cause, RsiError) else error
        except (
            gone.WorkerCrashedError,
            gone.NodeDiedError,
            gone.OutOfMemoryError,
            gone.ObjectLostError,
            gone.LocalRayletDiedError,
            gone.TaskCancelledError,
        ) as error:
            return WorkerLost(f"worker lost: {_first_line(error)}")
        return result


def _connect(address: str, slots: int) -> Any:
    """Start or join a cluster and return the `ray` module; one process is in one cluster."""
    local = address == "local"
    if local:
        # our cluster listens on all interfaces: a secret of its own keeps strangers out
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    else:
        _preflight(address)
        os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    import ray

    if ray.is_initialized():
        raise SettingsError("this process is already in a Ray cluster; close that pool first")
    options: dict[str, Any] = {
        "address": address,
        "namespace": _NAMESPACE,
        "log_to_driver": False,
        "logging_level": "ERROR",
    }
    if local:
        options |= {"num_cpus": slots, "include_dashboard": False}
    _start(ray, options)
    cpus = ray.cluster_resources().get("CPU", 0)
    if cpus < 1:
        # a task that asks for more than there is would wait for ever
        ray.shutdown()
        raise SettingsError(f"cluster.address={address}: {cpus:g} CPUs; a rollout needs one")
    return ray


def _start(ray: Any, options: dict[str, Any]) -> None:
    for attempt in range(1, _START_ATTEMPTS + 1):
        try:
            ray.init(**options)
            return
        except Exception as error:
            # on a loaded machine Ray gives up after some seconds with errors of many classes
            ray.shutdown()
            if attempt == _START_ATTEMPTS:
                raise SettingsError(
                    f"cluster.address={options['address']}: Ray did not start in "
                    f"{attempt} attempts: {_first_line(error)}; cluster=threads needs no Ray"
                ) from error
            log.warning("Ray did not start (%s); trying again", _first_line(error))
            time.sleep(attempt)


def _preflight(address: str) -> None:
    """Raise SettingsError at once where Ray would try for more than a minute."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise SettingsError(f"cluster.address={address}: use local or HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PREFLIGHT_S).close()
    except OSError as error:
        raise SettingsError(
            f"cluster.address={address}: nobody answers there ({error.strerror or error}); "
            "start the cluster first or use cluster.address=local"
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
