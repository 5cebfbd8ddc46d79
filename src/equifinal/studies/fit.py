"""A fit from a problem to a folder of results: what ``equifinal fit`` does."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import warn

from equifinal.errors import DataError, EquifinalError, InterruptedRunError
from equifinal.problem.problem import Problem
from equifinal.results import diagnostics
from equifinal.results import store as result
from equifinal.samplers.running.executors import workers
from equifinal.studies.progress import show_stage
from equifinal.studies.sample import run_settings, sample

if TYPE_CHECKING:
    from arviz import InferenceData

    from equifinal.identifiability.analysis import Identifiability
    from equifinal.results.meaning import Meaning

RESULTS, REPORT, CHECKPOINT, LOCK = "results.nc", "report.html", "checkpoint.npz", ".lock"
ANALYSIS_SECONDS = 20.0  # before a fit one does not want to wait long
# title: what of the summary, and how it is written
FULL = {
    "mean": ("mean", ".4g"),
    "sd": ("sd", ".4g"),
    "5%": ("q5", ".4g"),
    "50%": ("q50", ".4g"),
    "95%": ("q95", ".4g"),
    "ESS bulk": ("ess_bulk", ",.0f"),
    "ESS tail": ("ess_tail", ",.0f"),
    "ESS/s": ("ess_per_second", ",.0f"),
    "IACT": ("iact", ".1f"),
    "MCSE/SD %": ("mcse_over_sd", ".2f"),
    "R-hat": ("rhat", ".3f"),
}
COMPACT = {title: FULL[title] for title in ("mean", "sd", "5%", "95%", "ESS bulk", "R-hat")}


@dataclass(frozen=True, eq=False)
class Fit:
    """A finished (or interrupted) fit and where its results are.

    ``meaning`` is None where no analysis was wanted or could be made, ``report`` where none was written.
    """

    data: InferenceData
    summary: Mapping[str, diagnostics.Row]
    warnings: list[str]
    path: Path
    meaning: Meaning | None = None
    report: Path | None = None

    @property
    def interrupted(self) -> bool:
        return bool(self.data.attrs["interrupted"])

    def to_json(self) -> dict[str, Any]:
        attributes = self.data.attrs
        settings = json.loads(attributes["settings"])
        return {
            "sampler": attributes["sampler"],
            "chains": int(self.data.posterior.sizes["chain"]),
            "draws": int(self.data.posterior.sizes["draw"]),
            "warmup": settings["warmup"],
            "thin": settings["thin"],
            "seed": int(attributes["seed"]),
            "solves": int(attributes["solves"]),
            "failed_solves": int(attributes["failed_solves"]),
            "compile_seconds": float(attributes["compile_seconds"]),
            "warmup_seconds": float(attributes["warmup_seconds"]),
            "sampling_seconds": float(attributes["sampling_seconds"]),
            "acceptance": diagnostics.acceptance(self.data),
            "counts": json.loads(attributes["counts"]),
            "findings": json.loads(attributes["findings"]),
            "notes": json.loads(attributes["notes"]),
            "summary": {name: dict(row) for name, row in self.summary.items()},
            "results": str(self.path),
            "report": None if self.report is None else str(self.report),
            "interrupted": self.interrupted,
            "warnings": self.warnings,
        }


def fit(
    problem: Problem,
    settings: Mapping[str, Any],
    *,
    folder: Path | None = None,
    overwrite: bool = False,
    processes: int = 0,
    progress: bool = True,
    announce: Callable[[Identifiability], None] | None = None,
    report: bool = True,
) -> Fit:
    """Sample and save to a folder; take up again a run of the same problem and settings that was killed in it.

    ``announce`` is called with what can be known when nothing more stands in the way of a start.
    Without a folder, the first of NAME-run, NAME-run-2, ... that is free. With ``report``, a page is written too.
    """
    problem.require_complete()
    run_settings(problem, settings)  # before a folder is made
    pool = workers(processes)
    target = _claim_folder(problem.name) if folder is None else folder
    with pool as executor, _owned(target, overwrite), _to_be_continued(target):
        known = _analysed(problem) if announce is not None or report else None
        if announce is not None and known is not None:
            announce(known)
        data = sample(
            problem,
            **{key: value for key, value in settings.items() if value is not None},
            executor=executor,
            progress=progress,
            checkpoint=target / CHECKPOINT,
        )
        if known is not None:
            result.store_identifiability(data, known)
        path = result.save(data, target / RESULTS)
        (target / REPORT).unlink(missing_ok=True)  # of results that are no more
        result.load(path).close()  # the checkpoint goes only when the results are surely there
        if not data.attrs["interrupted"]:
            (target / CHECKPOINT).unlink(missing_ok=True)
    summary = diagnostics.summarise(data)
    warnings = diagnostics.advise(data, summary)
    meaning, page = None, None
    try:
        if known is not None:
            from equifinal.results.meaning import interpret

            meaning = interpret(data)
        if meaning is not None and report and not data.attrs["interrupted"]:
            from equifinal.report import page as pages

            with show_stage("writing the report", progress):
                page = pages.write_report(data, target / REPORT, meaning)
    except EquifinalError as error:  # the results are safe
        warn(f"no report was written: {error}", stacklevel=2)
    return Fit(data, summary, warnings, path, meaning, page)


def _analysed(problem: Problem) -> Identifiability | None:
    """What can be known; None, with a warning, where that cannot be found out: it is no reason not to fit."""
    from equifinal.errors import IdentifiabilityError
    from equifinal.identifiability.analysis import analyse

    try:
        return analyse([e.model for e in problem.experiments], time_limit=ANALYSIS_SECONDS)
    except IdentifiabilityError as error:
        warn(f"what can be known was not found out, so there will be no report: {error}", stacklevel=2)
        return None


def _claim_folder(name: str) -> Path:
    """The first of NAME-run, NAME-run-2, ... that is new, or that holds an unfinished run nobody is working on."""
    number = 1
    while True:
        folder = Path(f"{name}-run" if number == 1 else f"{name}-run-{number}")
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            if (folder / CHECKPOINT).exists() and _owner(folder) is None:
                return folder
        except OSError as error:
            raise DataError(f"cannot make the folder {folder}: {error.strerror or error}") from None
        number += 1


@contextmanager
def _owned(folder: Path, overwrite: bool) -> Iterator[None]:
    """The folder, for this process alone."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; --out must name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if _owner(folder) is None:
            (folder / LOCK).unlink(missing_ok=True)  # of a process that was killed
        with open(folder / LOCK, "x") as lock:
            lock.write(str(os.getpid()))
    except FileExistsError:
        raise DataError(f"another fit is writing to {folder}; choose another folder with --out") from None
    except OSError as error:
        raise DataError(f"cannot write to the folder {folder}: {error.strerror or error}") from None
    try:
        if overwrite:
            (folder / CHECKPOINT).unlink(missing_ok=True)
        elif (folder / RESULTS).exists() and not (folder / CHECKPOINT).exists():
            raise DataError(f"{folder} already holds results; choose another folder with --out, or pass --overwrite")
        yield
    finally:
        for leftover in (folder / LOCK, *folder.glob(".*.part")):
            leftover.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()


@contextmanager
def _to_be_continued(folder: Path) -> Iterator[None]:
    """An interrupt outside of sampling loses nothing either, if there is a checkpoint."""
    try:
        yield
    except KeyboardInterrupt:
        if not (folder / CHECKPOINT).exists():
            raise
        raise InterruptedRunError("interrupted") from None


def _owner(folder: Path) -> int | None:
    """The process that is at work in a folder; a killed one has left only its number."""
    try:
        process = int((folder / LOCK).read_text())
        os.kill(process, 0)
    except (OSError, ValueError, OverflowError):
        return None
    return process


# --- for people ---


def show(done: Fit, verbose: bool = False) -> None:
    """Print what the data said, what the run cost, warnings, and where the results are; verbosely, all diagnostics."""
    import sys

    from rich.console import Console
    from rich.text import Text

    console = Console() if sys.stdout.isatty() else Console(width=120)
    attributes = done.data.attrs
    if done.meaning is not None:
        from equifinal.words.fit import summary_page

        _print_uncut(console, summary_page(done.meaning, done.summary, console.width))
        console.print()
    if done.meaning is None or verbose:
        table = summary_table(done, FULL)
        if Console(width=1000).measure(table).maximum > console.width:
            table = summary_table(done, COMPACT)
        _print_uncut(console, table)
    per_chain = done.data.posterior.sizes["draw"]
    console.print(
        f"{attributes['sampler']}: {done.data.posterior.sizes['chain']} x {per_chain:,} draws, "
        f"{diagnostics.acceptance(done.data):.1%} accepted, seed {attributes['seed']}",
        highlight=False,
    )
    console.print(
        f"{attributes['solves']:,} ODE solves ({attributes['failed_solves']:,} failed); compiled in "
        f"{attributes['compile_seconds']:.1f} s, warm-up {attributes['warmup_seconds']:.1f} s, "
        f"sampling {attributes['sampling_seconds']:.1f} s",
        highlight=False,
    )
    for line in (*json.loads(attributes["notes"]), *diagnostics.moves_in_words(done.data)):
        console.print(line, highlight=False)
    if attributes["resumed_at"] >= 0:
        console.print(f"taken up at iteration {attributes['resumed_at']:,}", highlight=False)
    for warning in done.warnings:
        console.print("[yellow]![/]", Text(warning), highlight=False)
    if not done.warnings:
        console.print("[green]the draws are sound, as far as diagnostics can tell[/]", highlight=False)
    if done.report is not None:
        console.print(Text(f"report:  {done.report}"), highlight=False, soft_wrap=True)
    console.print(Text(f"results: {done.path}   (open with arviz.from_netcdf)"), highlight=False, soft_wrap=True)


def _print_uncut(console: Any, shown: Any) -> None:
    """Numbers are never cut: a terminal narrower than a table wraps its lines."""
    from rich.console import Console

    width = max(console.width, _table_width(shown))
    Console(width=width, soft_wrap=True).print(shown) if width > console.width else console.print(shown)


def _table_width(shown: Any) -> int:
    """Of the widest table in it."""
    from rich.console import Console, Group
    from rich.table import Table

    parts = shown.renderables if isinstance(shown, Group) else [shown]
    return max((Console(width=1000).measure(p).maximum for p in parts if isinstance(p, Table)), default=0)


def summary_table(done: Fit, columns: Mapping[str, tuple[str, str]]) -> Any:
    from rich.table import Table

    table = Table(title=f"Posterior of {done.data.attrs['problem']}", title_justify="left", box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for title in columns:
        table.add_column(title, justify="right", no_wrap=True)
    for name, row in done.summary.items():
        cells = ["-" if math.isnan(row[key]) else format(row[key], style) for key, style in columns.values()]
        if row["rhat"] > diagnostics.RHAT_LIMIT:
            cells[-1] = f"[red]{cells[-1]}[/]"
        table.add_row(name, *cells)
    return table
