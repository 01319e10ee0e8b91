"""`python -m rsi.export run=ID [out=FILE]` copies a run's frozen strategy after checking it;
`python -m rsi.export verify FILE` exits 1 and names what was altered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rsi.cli import run_command
from rsi.compose import arguments, help_text, load, wants_help
from rsi.errors import FrozenError, SettingsError
from rsi.frozen import read_frozen
from rsi.settings import ExportSettings
from workers.files import write_atomic
from workers.store import as_json

ALTERED = 1


def main() -> int:
    """Run the command; returns its exit code."""
    argv = arguments()
    if wants_help(argv):
        print(help_text("rsi.export", "export", "[verify FILE] | "))
        return 0
    if argv and argv[0] == "verify":
        return verify(argv[1:])
    return export(load("export", ExportSettings, argv))


def verify(files: Sequence[str]) -> int:
    """Check frozen files: 0 when all are whole, else 1, naming what was altered."""
    if not files:
        raise SettingsError("verify needs a file: python -m rsi.export verify FILE")
    for name in files:
        path = Path(name)
        if not path.is_file():
            raise FrozenError(f"{path}: no such file")
        try:
            document = read_frozen(path)
        except FrozenError as error:
            print(f"error: {error}")
            return ALTERED
        print(f"{path}: whole, strategy {document['strategyId'][:12]}, digest {document['digest']}")
    return 0


def export(settings: ExportSettings) -> int:
    """Copy the frozen strategy of a finished run to `out`, or print where it is."""
    folder = settings.runs_dir / settings.run
    if not folder.is_dir():
        raise SettingsError(f"run={settings.run}: no such run in {settings.runs_dir}")
    source = folder / "frozen_strategy.json"
    if not source.is_file():
        raise SettingsError(
            f"run={settings.run}: not finished, nothing is frozen yet; "
            f"resume it with the command that started it and run_id={settings.run}"
        )
    document = read_frozen(source)
    target = settings.out or source
    if target.is_dir() or not target.name:
        raise SettingsError(f"out={target}: is a folder; name a file")
    if target != source:
        if not target.parent.is_dir():
            raise SettingsError(f"out={target}: folder {target.parent} does not exist")
        write_atomic(target, source.read_bytes())
    print(f"{target}: strategy {document['strategyId'][:12]}, digest {document['digest']}")
    print(as_json(document["strategy"]), end="")
    summary = {
        "command": "export",
        "file": str(target),
        "strategyId": document["strategyId"],
        "digest": document["digest"],
    }
    write_atomic(folder / "export" / "summary.json", as_json(summary))
    return 0


if __name__ == "__main__":
    run_command(main)
