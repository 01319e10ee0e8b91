"""Keep other people's start-up messages out of a run's output; call before importing them."""

from __future__ import annotations

import logging
import os
import warnings

_SETTINGS = {
    # Ray: no usage report, no upload of the working tree under `uv run`, no scheduler chatter
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_SCHEDULER_EVENTS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1",
    # MLflow: no telemetry, no logged-model hints, and a dead server costs seconds, not minutes
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    # LiteLLM: the price list it ships, never a download
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "GIT_PYTHON_REFRESH": "quiet",
}
_LOGGERS = ("alembic", "mlflow", "ray", "LiteLLM", "sqlalchemy", "git", "urllib3.connectionpool")


def quiet() -> None:
    """Set the environment (unless the user did), raise log levels to errors, drop warnings."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    # deprecations inside libraries are for their authors
    warnings.filterwarnings("ignore", module=r"(mlflow|sqlalchemy|alembic|ray|litellm)\b")
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.ERROR)
