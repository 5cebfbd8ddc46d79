"""The two lines of ArviZ behind one face: 0.23, with `InferenceData`, and 1.x, with xarray's `DataTree`.

Both have groups as attributes (``data.posterior``), attributes of the whole (``data.attrs``), and ``to_netcdf``; only
how they are made and read differs.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from arviz import InferenceData

Groups = Mapping[str, Mapping[str, Any]]
LOG_PRIOR = "log_prior"
TAILS = (0.05, 0.95)


def import_arviz() -> ModuleType:
    """ArviZ without its announcement of a coming version, which is not news to our user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz
    return arviz


def has_trees() -> bool:
    """Whether the ArviZ that is installed keeps results as a `DataTree`."""
    return int(version("arviz").split(".")[0]) >= 1


def from_groups(
    groups: Groups, *, dims: Mapping[str, list[str]], coords: Mapping[str, Any], attrs: Mapping[str, Any]
) -> InferenceData:
    """Results from arrays by group and name; those of draws have the axes (chain, draw, ...)."""
    arviz = import_arviz()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about few draws: our own advice says more
        if has_trees():
            data = arviz.from_dict(dict(groups), dims=dict(dims), coords=dict(coords))
            data.attrs |= attrs
            return data
        known = {name: group for name, group in groups.items() if name != LOG_PRIOR}
        data = arviz.from_dict(**known, dims=dims, coords=coords, attrs=attrs)
        if LOG_PRIOR in groups:  # which that line has no argument for
            data.add_groups({LOG_PRIOR: dict(groups[LOG_PRIOR])}, warn_on_custom_groups=False)
        return data


def read_netcdf(path: str | Path) -> InferenceData:
    return import_arviz().from_netcdf(str(path), engine="h5netcdf")


def datasets(data: InferenceData) -> dict[str, Any]:
    """The groups of results as xarray datasets, by name."""
    if has_trees():
        return {name: node.to_dataset() for name, node in data.children.items()}
    return {name: data[name] for name in data.groups()}


def store_text(data: InferenceData, group: str, name: str, text: str) -> None:
    """Keep a text in a group of results."""
    import xarray

    data[group][name] = xarray.DataArray(np.array(text)) if has_trees() else np.array(text)


def name_draws(data: InferenceData, group: str, numbers: np.ndarray) -> None:
    """Say which draws of each chain a group is of."""
    if has_trees():
        data[group].dataset = data[group].to_dataset().assign_coords(draw=numbers)
    else:
        setattr(data, group, data[group].assign_coords(draw=numbers))


def ess(draws: np.ndarray, method: str, prob: float | None = None) -> float:
    """Effective draws of an array (chains, draws)."""
    asked: float | tuple[float, float] | None = TAILS if method == "tail" else prob
    arguments = {} if asked is None else {"prob": asked}
    return float(import_arviz().ess(draws, method=method, **arguments))


def rhat(draws: np.ndarray, method: str = "rank") -> float:
    return float(import_arviz().rhat(draws, method=method))


def autocorrelation(draws: np.ndarray) -> np.ndarray:
    """Of one chain, at every lag; 1 at lag 0."""
    x = draws - draws.mean()
    size = 1 << (2 * x.size - 1).bit_length()
    found = np.fft.irfft(np.abs(np.fft.rfft(x, size)) ** 2, size)[: x.size]
    return found / found[0]
