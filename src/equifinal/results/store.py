"""Results to netCDF and back, and what they say of their problem and its analysis."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from equifinal.errors import DataError, IdentifiabilityError
from equifinal.files import replace_file, require_regular
from equifinal.formats.json import problem_from_json
from equifinal.identifiability.verdicts import GLOBALLY, LOCALLY, NOT, UNKNOWN, Identifiability
from equifinal.language.expression import names
from equifinal.problem.problem import Problem
from equifinal.results.arviz_lines import datasets, read_netcdf, store_text
from equifinal.results.checked import require_ours
from equifinal.results.groups import PROBLEM

if TYPE_CHECKING:
    from arviz import InferenceData

IDENTIFIABILITY = "identifiability"  # in constant_data
RESULTS = "results.nc"  # in the folder of a fit


def save(data: InferenceData, path: str | Path) -> Path:
    """Write netCDF in one stroke: the file is either whole or as it was before."""
    path = Path(path)
    size = sum(dataset.nbytes for dataset in datasets(data).values())
    folder = next(p for p in path.absolute().parents if p.exists())
    if shutil.disk_usage(folder).free < 1.2 * size + 1e5:  # HDF5 does not survive a full disk
        raise DataError(f"cannot write the results {path}: they need {size / 1e6:.1f} MB, but the disk is nearly full")
    return replace_file(path, lambda target: data.to_netcdf(str(target), engine="h5netcdf"), "the results")


def load(path: str | Path) -> InferenceData:
    """Read results back.

    Parameters
    ----------
    path
        The file that a fit has written, such as ``si-run/results.nc``, or its folder.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.load_results("si-run")  # doctest: +SKIP
    """
    path = Path(path) / RESULTS if Path(path).is_dir() else Path(path)
    require_regular(path)
    try:
        data = read_netcdf(path)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:  # whatever HDF5 holds
        raise DataError(f"cannot read results from {path}: {error}") from None
    if PROBLEM in getattr(data, "constant_data", ()):
        require_ours(data, problem_of(data))
    return data


def require_whole(path: Path) -> None:
    """Make sure that a file of results can be opened: HDF5 sees a file that was cut short."""
    import h5netcdf

    try:
        h5netcdf.File(path, "r").close()
    except OSError as error:
        raise DataError(f"the results {path} were not written whole: {error}") from None


def problem_of(data: InferenceData) -> Problem:
    """The problem that results are of.

    Raises
    ------
    DataError
        If the results do not contain it, as those of other programs do not.
    """
    stored = getattr(data, "constant_data", None)
    if stored is None or PROBLEM not in stored:
        raise DataError("these results do not contain their problem; run equifinal fit again with this version")
    if stored[PROBLEM].size != 1:
        raise DataError("these results do not contain their problem as one text; run equifinal fit again")
    return problem_from_json(str(stored[PROBLEM].item()))


def store_identifiability(data: InferenceData, analysis: Identifiability) -> None:
    """Keep the analysis with the results, so that it need not be made again."""
    store_text(data, "constant_data", IDENTIFIABILITY, json.dumps(analysis.to_json()))


def has_identifiability(data: InferenceData) -> bool:
    """Whether an analysis is stored with the results."""
    return IDENTIFIABILITY in getattr(data, "constant_data", ())


def identifiability_of(data: InferenceData) -> Identifiability:
    """The analysis stored with the results, else one made now."""
    from equifinal.posterior.design import analysed

    stored = getattr(data, "constant_data", None)
    if stored is not None and IDENTIFIABILITY in stored:
        with suppress(IdentifiabilityError, ValueError, RecursionError):  # of another version, or edited
            known = Identifiability.from_json(json.loads(str(stored[IDENTIFIABILITY].item())))
            if _is_about(known, problem_of(data)):
                return known
    return analysed(problem_of(data), time_limit=inf, effort=1.0)


def _is_about(known: Identifiability, problem: Problem) -> bool:
    """Whether an analysis speaks of the parameters of a problem, and of nothing else."""
    words = {*known.parameters.values(), *known.quantities.values()}
    used = {name for expression in (*known.combinations, *known.rational) for name in names(expression)}
    return (
        words <= {GLOBALLY, LOCALLY, NOT, UNKNOWN}
        and set(known.parameters) <= set(problem.parameters)
        and {name for e in problem.experiments for name in e.analysed.parameters} <= set(known.parameters)
        and used <= {*problem.parameters, *known.constants}
    )
