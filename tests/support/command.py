"""The command line in this process."""

from __future__ import annotations

import pytest

from equifinal.cli import app


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """The exit code of a command."""
    monkeypatch.setattr("sys.argv", ["equifinal", *map(str, arguments)])
    try:
        app.main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0
