"""What the data said, and what the prior said: prior beside posterior for everything that has a name.

How much the data said about each is `equifinal.results.information`: bits and shrinkage on the prior's own scale, and
whether they determine it or only bound it.

For what is not identifiable there is a second number, the *prior's share*: the part of the posterior variance that is
left when every identifiable combination is known. No data of this kind can reduce it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import IdentifiabilityError
from equifinal.fibre import Fibre
from equifinal.identifiability.verdicts import GLOBALLY, NOT, Identifiability
from equifinal.language.expression import Expression, Name, evaluate, names, to_text
from equifinal.language.functions import call_on_arrays
from equifinal.posterior.study import Study
from equifinal.prediction.predict import prior_rows
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem
from equifinal.results.information import (
    BARELY_INFORMED,
    BOUNDED_ABOVE,
    BOUNDED_BELOW,
    Information,
    against_draws,
    information,
)
from equifinal.results.store import identifiability_of, problem_of
from equifinal.showing import Shown

if TYPE_CHECKING:
    from arviz import InferenceData

Array = NDArray[np.float64]

PARAMETER, NOISE, QUANTITY, COMBINATION = "parameter", "noise", "quantity", "combination"
PRIOR_DRAWS, REGRESSED, MOST_CROSSED = 20_000, 4000, 16
UNTOUCHED = 0.1  # shrinkage below which a posterior is said to be the prior
WEAK = 0.5  # shrinkage of a direction below which data say little about it


@dataclass(frozen=True, eq=False)
class Finding:
    """One parameter, quantity of interest or combination.

    Attributes
    ----------
    kind
        ``parameter``, ``noise`` (a parameter that only the noise has), ``quantity`` or ``combination``.
    verdict
        ``globally``, ``locally`` or ``not`` identifiable.
    alternatives
        Of a locally identifiable one, how many values are possible; 0 if not known.
    prior, posterior
        Draws, finite ones only.
    information
        What the data said about it.
    prior_share
        See the module; 0 for what is globally identifiable, NaN where not known.
    """

    name: str
    kind: str
    expression: Expression
    verdict: str
    alternatives: int
    prior: Array
    posterior: Array
    information: Information
    prior_share: float

    @property
    def shrinkage(self) -> float:
        return self.information.shrinkage

    @property
    def weak(self) -> bool:
        """Identifiable, but barely informed by these data."""
        return self.verdict != NOT and self.information.kind == BARELY_INFORMED

    @property
    def bounded(self) -> bool:
        """Identifiable, but only bounded from one side by these data."""
        return self.verdict != NOT and self.information.kind in (BOUNDED_ABOVE, BOUNDED_BELOW)

    @cached_property
    def mean(self) -> float:
        return float(self.posterior.mean()) if self.posterior.size else math.nan

    @cached_property
    def sd(self) -> float:
        return float(self.posterior.std(ddof=1)) if self.posterior.size > 1 else math.nan

    def quantile(self, q: float) -> float:
        return float(np.quantile(self.posterior, q)) if self.posterior.size else math.nan


@dataclass(frozen=True)
class Direction:
    """A product of powers of combinations (those that change sign: a sum), and the shrinkage along it."""

    weights: Mapping[str, float]
    shrinkage: float
    logarithmic: Mapping[str, bool]


@dataclass(frozen=True, eq=False, repr=False)
class Meaning(Shown):
    """What a run says about its problem: see `interpret`."""

    problem: Problem
    identifiability: Identifiability
    findings: tuple[Finding, ...]
    weakest: Direction | None
    fibre: Fibre | None = field(repr=False)

    def __repr__(self) -> str:
        return f"<Meaning of {self.problem.name}: {', '.join(f.name for f in self.findings)}>"

    def of_kind(self, *kinds: str) -> list[Finding]:
        return [f for f in self.findings if f.kind in kinds]

    def named(self, name: str) -> Finding:
        return next(f for f in self.findings if f.name == name)

    def combinations_with(self, finding: Finding) -> list[Finding]:
        """What the data determine of a parameter: the combinations it appears in."""
        return [f for f in self.of_kind(COMBINATION) if finding.name in names(f.expression)]

    def tied_to(self, finding: Finding) -> list[str]:
        """Other unidentifiable parameters in those combinations."""
        used = [name for f in self.combinations_with(finding) for name in names(f.expression) if name != finding.name]
        verdicts = self.identifiability.parameters
        return [name for name in dict.fromkeys(used) if verdicts.get(name, GLOBALLY) != GLOBALLY]


def interpret(data: InferenceData, *, study: Study | None = None) -> Meaning:
    """Set prior beside posterior for every parameter, quantity of interest and identifiable combination of a run.

    Parameters
    ----------
    study
        The study that the run is of, if it is at hand; left out, its problem and analysis are read from the data.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> found = equifinal.interpret(data)
    >>> found.named("gamma").verdict
    'not'
    """
    study = study or Study(problem_of(data), analysis=identifiability_of(data))
    problem, analysis, fibre = study.problem, study.analysis, _fibre(study)
    theta = np.column_stack([data.posterior[name].values.reshape(-1) for name in problem.parameters])
    constants = {name: float(value) for name, value in analysis.constants.items()}
    before = _columns(problem, prior_rows(problem, PRIOR_DRAWS), constants)
    after = _columns(problem, theta, constants)
    features = _features(analysis, after, fibre)
    findings = []
    for name, kind, expression, verdict in _everything(problem, analysis):
        prior, posterior = _values(expression, before), _values(expression, after)
        known = _against_prior(problem.priors[name], posterior) if isinstance(expression, Name) else None
        told = known or against_draws(prior, posterior)
        share = 0.0 if verdict == GLOBALLY else _prior_share(posterior, features)
        prior, posterior = prior[np.isfinite(prior)], posterior[np.isfinite(posterior)]
        count = analysis.alternatives.get(name, 0)
        findings.append(Finding(name, kind, expression, verdict, count, prior, posterior, told, share))
    weakest = None if analysis.finer else _weakest(fibre, before, after)
    return Meaning(problem, analysis, tuple(findings), weakest, fibre)


def _fibre(study: Study) -> Fibre | None:
    try:
        return study.fibre
    except IdentifiabilityError:
        return None


def _columns(problem: Problem, theta: Array, constants: Mapping[str, float]) -> dict[str, Array]:
    columns = {name: theta[:, j] for j, name in enumerate(problem.parameters)}
    return columns | {name: np.full(len(theta), value) for name, value in constants.items()}


def _values(expression: Expression, columns: Mapping[str, Array]) -> Array:
    size = next(iter(columns.values())).size
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(evaluate(expression, columns, float, call_on_arrays), float), (size,)).copy()


def _everything(problem: Problem, analysis: Identifiability) -> list[tuple[str, str, Expression, str]]:
    noise = {name for e in problem.experiments for name in e.noise_parameters}
    rows: list[tuple[str, str, Expression, str]] = []
    for name in problem.parameters:
        if name in analysis.parameters and name not in noise:
            rows.append((name, PARAMETER, Name(name), analysis.parameters[name]))
        else:  # the scatter of the data tells it
            rows.append((name, NOISE, Name(name), GLOBALLY))
    for name, expression in problem.quantities.items():
        if name not in problem.parameters:
            rows.append((name, QUANTITY, expression, _quantity_verdict(name, expression, problem, analysis)))
    for expression in analysis.determined:
        if not isinstance(expression, Name):  # a parameter by itself was told above
            rows.append((to_text(expression), COMBINATION, expression, GLOBALLY))
    return rows


def _quantity_verdict(name: str, expression: Expression, problem: Problem, analysis: Identifiability) -> str:
    if name in analysis.quantities:
        return analysis.quantities[name]
    known = [analysis.parameters.get(n, GLOBALLY) for n in names(expression)]
    return GLOBALLY if all(word == GLOBALLY for word in known) else NOT


def _against_prior(prior: Prior, posterior: Array) -> Information:
    return information(prior.cdf(posterior), prior.mass(posterior, np.full(posterior.shape, prior.upper)))


# --- how much of a posterior is left when the combinations are known ---


def _features(analysis: Identifiability, columns: Mapping[str, Array], fibre: Fibre | None) -> Array | None:
    """Scores of the combinations, their squares and products: enough for a smooth function near the posterior."""
    if not analysis.complete or analysis.finer:  # finer ones hold more still than the data do
        return None
    functions = fibre.functions if fibre else analysis.combinations
    values = [_values(f, columns) for f in functions]
    scores = [s for s in map(_scores, values) if s is not None]
    size = next(iter(columns.values())).size
    crossed = scores if len(scores) <= MOST_CROSSED else []
    return np.column_stack(
        [
            np.ones(size),
            *scores,
            *(s * s - 1 for s in scores),
            *(a * b for i, a in enumerate(crossed) for b in crossed[i + 1 :]),
        ]
    )


def _scores(values: Array) -> Array | None:
    """Normal scores of ranks: whatever the scale, and no tail can dominate."""
    from scipy.special import ndtri

    if not np.isfinite(values).all() or np.ptp(values) == 0:
        return None
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return ndtri((ranks + 0.5) / len(values))


def _prior_share(values: Array, features: Array | None) -> float:
    scores = _scores(values)
    if features is None or scores is None:
        return math.nan
    step = max(1, len(scores) // REGRESSED)
    x, y = features[::step], scores[::step]
    if len(y) < 4 * x.shape[1]:
        x = x[:, : max(1, len(y) // 4)]
    left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    spread = float(left @ left) / max(1, len(y) - x.shape[1]) / float(y.var(ddof=1))
    return min(1.0, max(0.0, spread))


# --- the direction that the data determine worst ---


def _weakest(fibre: Fibre | None, before: Mapping[str, Array], after: Mapping[str, Array]) -> Direction | None:
    """The largest generalised eigenvalue of the covariances of the combinations, posterior against prior."""
    if fibre is None:
        return None
    rows: dict[str, tuple[Array, Array]] = {}
    logarithmic: dict[str, bool] = {}
    for function in fibre.combinations.independent:
        pair = _values(function, before), _values(function, after)
        finite = np.concatenate([v[np.isfinite(v)] for v in pair])
        signed = bool(finite.size and ((finite > 0).all() or (finite < 0).all()))
        name = to_text(function)
        logarithmic[name] = signed
        with np.errstate(all="ignore"):
            rows[name] = tuple(np.log(np.abs(v)) if signed else v for v in pair)  # type: ignore[assignment]
    if not rows:
        return None
    covariances = []
    for side in (0, 1):
        table = np.column_stack([pair[side] for pair in rows.values()])
        table = table[np.isfinite(table).all(axis=1)]
        if len(table) < 10 * len(rows):
            return None
        covariances.append(np.atleast_2d(np.cov(table, rowvar=False)))
    scale = 1.0 / np.sqrt(np.diag(covariances[0]))
    if not np.isfinite(scale).all():
        return None
    return _worst(list(rows), covariances, scale, logarithmic)


def _worst(
    labels: Sequence[str], covariances: Sequence[Array], scale: Array, logarithmic: Mapping[str, bool]
) -> Direction | None:
    from scipy.linalg import LinAlgError, eigh

    prior, posterior = (c * np.outer(scale, scale) for c in covariances)
    try:
        values, vectors = eigh(posterior, prior + 1e-9 * np.eye(len(prior)))
    except (LinAlgError, ValueError):
        return None
    weights = vectors[:, -1] * scale
    weights = weights / weights[np.argmax(np.abs(weights * np.sqrt(np.diag(covariances[1]))))]
    felt = np.abs(weights) * np.sqrt(np.diag(covariances[1]))  # how much each adds to the spread
    kept = {label: float(w) for label, w, f in zip(labels, weights, felt, strict=True) if f > 0.2 * felt.max()}
    return Direction(kept, 1.0 - float(values[-1]), {label: logarithmic[label] for label in kept})
