"""The command line. It parses arguments and prints; heavy imports live inside the commands, so that help is instant.

Exit codes: 0 fine, 2 the user's error, 1 ours, 130 interrupted. With ``--json`` standard output is one JSON document.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable
from functools import wraps
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from equifinal.cli import export as cli_export
from equifinal.cli import fit as cli_fit
from equifinal.cli import problems, solving
from equifinal.cli import results as cli_results
from equifinal.cli import studies as cli_studies
from equifinal.cli.common import with_flags

app: typer.Typer = typer.Typer(
    name="equifinal",
    help="Bayesian inference for ODE models whose parameters cannot all be identified.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help names values as FILE or N, the boxed one by their Python types
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def main() -> None:
    """Run the command line; no traceback reaches the user."""
    from equifinal.errors import EquifinalError, InterruptedRunError

    for name in ("stdout", "stderr"):  # closed by whoever started us
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    _interrupt_politely()
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal without Greek letters is no reason to stop
            stream.reconfigure(errors="replace")
    try:
        try:
            app()
        except _Ended as end:
            raise end.reason from None
    except InterruptedRunError as error:
        print(f"{error}; run the same command to resume", file=sys.stderr)
        sys.exit(130)
    except EquifinalError as error:
        print(f"error: {_shown(with_flags(str(error)))}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        print(f"error: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        if os.environ.get("EQUIFINAL_DEBUG"):
            raise
        with tempfile.NamedTemporaryFile("w", prefix="equifinal-", suffix=".log", delete=False) as log:
            traceback.print_exc(file=log)
        print(
            f"internal error: {type(error).__name__}: {error}\n"
            f"This is a bug in equifinal; please report it, with the details in {log.name}",
            file=sys.stderr,
        )
        sys.exit(1)


class _Ended(Exception):
    """What ended a command, in a guise that Typer lets pass: it exits by itself, and silently, at Ctrl-C and at a
    closed pipe.
    """

    def __init__(self, reason: BaseException):
        self.reason = reason


def _with_ends(command: Callable[..., None]) -> Callable[..., None]:
    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except (KeyboardInterrupt, BrokenPipeError) as reason:
            raise _Ended(reason) from None

    return run


def _interrupt_politely() -> None:
    """Let a shutdown and a closed terminal save what Ctrl-C saves."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        return
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # not every system has both
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # `nohup` has one ignored
            signal.signal(number, interrupt)


def _show_warning(message: Warning | str, *_: Any) -> None:
    print(f"warning: {_shown(with_flags(str(message)))}", file=sys.stderr)


def _shown(message: str) -> str:
    """A message may quote a file, and what a terminal would obey is not printed."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in message)


def _version(value: bool) -> None:
    if value:
        from equifinal import __version__

        print(f"equifinal {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


for _command in (
    problems.analyse,
    cli_fit.fit,
    problems.check,
    solving.simulate,
    solving.equivalents,
    problems.examples,
    cli_results.predict,
    cli_results.report,
    cli_results.compare,
    cli_studies.calibrate,
    cli_studies.paper,
    cli_export.export,
):
    app.command()(_with_ends(_command))
app.command("import")(_with_ends(problems.import_))
