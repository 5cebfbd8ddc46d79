"""A fit from a problem to a folder of results: what ``equifinal fit`` does."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equifinal import diagnostics, result
from equifinal.errors import DataError
from equifinal.problem import Problem

if TYPE_CHECKING:
    from arviz import InferenceData

RESULTS, CHECKPOINT, LOCK = "results.nc", "checkpoint.npz", ".lock"
SHOWN = ("mean", "sd", "q5", "q50", "q95", "ess_bulk", "ess_tail", "ess_per_second", "iact", "mcse_over_sd", "rhat")


@dataclass(frozen=True, eq=False)
class Fit:
    """A finished (or interrupted) fit and where its results are."""

    data: InferenceData
    summary: Mapping[str, diagnostics.Row]
    warnings: list[str]
    path: Path

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
            "summary": {name: dict(row) for name, row in self.summary.items()},
            "results": str(self.path),
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
) -> Fit:
    """Sample and save to a folder; take up again a run of the same problem and settings that was killed in it.

    Without a folder, the first of NAME-run, NAME-run-2, ... that is free.
    """
    problem.require_complete()
    result.run_settings(problem, settings)  # before a folder is made
    workers = _workers(processes)
    target = _claim_folder(problem.name) if folder is None else folder
    with workers as executor, _owned(target, overwrite):
        data = result.sample(
            problem,
            **{key: value for key, value in settings.items() if value is not None},
            executor=executor,
            progress=progress,
            checkpoint=target / CHECKPOINT,
        )
        path = result.save(data, target / RESULTS)
        result.load(path).close()  # the checkpoint goes only when the results are surely there
        if not data.attrs["interrupted"]:
            (target / CHECKPOINT).unlink(missing_ok=True)
    summary = diagnostics.summarise(data)
    return Fit(data, summary, diagnostics.advise(data, summary), path)


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


def _owner(folder: Path) -> int | None:
    """The process that is at work in a folder; a killed one has left only its number."""
    try:
        process = int((folder / LOCK).read_text())
        os.kill(process, 0)
    except (OSError, ValueError, OverflowError):
        return None
    return process


def _workers(processes: int) -> AbstractContextManager[Executor | None]:
    if processes < 0:
        raise DataError(f"the number of processes cannot be {processes}")
    if processes == 0:
        return nullcontext(None)
    # forking after threads have started can deadlock
    return ProcessPoolExecutor(processes, mp_context=get_context("spawn"))


# --- for people ---


def show(done: Fit) -> None:
    """Print the summary table, what the run cost, warnings, and where the results are."""
    import sys

    from rich.console import Console

    console = Console() if sys.stdout.isatty() else Console(width=120)
    attributes = done.data.attrs
    console.print(summary_table(done))
    per_chain = done.data.posterior.sizes["draw"]
    console.print(
        f"{attributes['sampler']}: {done.data.posterior.sizes['chain']} chains of {per_chain:,} draws, "
        f"{diagnostics.acceptance(done.data):.1%} accepted, seed {attributes['seed']}",
        highlight=False,
    )
    console.print(
        f"{attributes['solves']:,} ODE solves ({attributes['failed_solves']:,} failed); compiled in "
        f"{attributes['compile_seconds']:.1f} s, warm-up {attributes['warmup_seconds']:.1f} s, "
        f"sampling {attributes['sampling_seconds']:.1f} s",
        highlight=False,
    )
    if attributes["resumed_at"] >= 0:
        console.print(f"taken up at iteration {attributes['resumed_at']:,}", highlight=False)
    for warning in done.warnings:
        console.print(f"[yellow]![/] {warning}", highlight=False)
    console.print(f"results: {done.path}   (open with arviz.from_netcdf)", highlight=False, soft_wrap=True)


def summary_table(done: Fit) -> Any:
    from rich.table import Table

    table = Table(title=f"Posterior of {done.data.attrs['problem']}", title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for title in ("mean", "sd", "5%", "50%", "95%", "ESS bulk", "ESS tail", "ESS/s", "IACT", "MCSE/SD %", "R-hat"):
        table.add_column(title, justify="right")
    for name, row in done.summary.items():
        numbers = [f"{row[key]:.4g}" for key in SHOWN[:5]]
        numbers += [f"{row[key]:,.0f}" for key in ("ess_bulk", "ess_tail", "ess_per_second")]
        numbers += [f"{row['iact']:.1f}", f"{row['mcse_over_sd']:.2f}"]
        bad = row["rhat"] > diagnostics.RHAT_LIMIT
        rhat = f"{row['rhat']:.3f}"
        table.add_row(name, *("-" if n == "nan" else n for n in numbers), f"[red]{rhat}[/]" if bad else rhat)
    return table
