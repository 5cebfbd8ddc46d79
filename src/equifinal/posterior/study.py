"""A problem with all that is known of it: its analysis, its fibres and its posterior, each made once."""

from __future__ import annotations

from functools import cached_property
from math import inf
from warnings import warn

from equifinal.errors import IdentifiabilityError
from equifinal.fibre import Fibre
from equifinal.fibre.of_problem import fibre_of, itself
from equifinal.identifiability.verdicts import Identifiability
from equifinal.language.expression import to_text
from equifinal.posterior.design import analysed
from equifinal.posterior.guard import largest_difference
from equifinal.posterior.posterior import Posterior
from equifinal.problem.problem import Problem

EFFORT = 1.0  # of the analysis: before a fit one does not want to wait long

MOST_POINTS = 24  # on a fibre that samplers can use


class Study:
    """What `sample`, `fit`, `compare` and `calibrate` hand on to each other.

    Parameters
    ----------
    problem
        The problem; it may still lack data for what does not need them.
    analysis
        What can be known, if that has been found out already; left out, the models are analysed when first needed.
    fibre
        The fibre, if it is known already.
    """

    def __init__(self, problem: Problem, *, analysis: Identifiability | None = None, fibre: Fibre | None = None):
        self.problem = problem
        self._analysis: Identifiability | IdentifiabilityError | None = analysis
        self._given = fibre

    @classmethod
    def of(
        cls, problem: Problem | Study, *, analysis: Identifiability | None = None, fibre: Fibre | None = None
    ) -> Study:
        """Take a study as it is, and a problem as the beginning of one."""
        return problem if isinstance(problem, Study) else cls(problem, analysis=analysis, fibre=fibre)

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior, compiled."""
        return Posterior(self.problem)

    @property
    def known_analysis(self) -> Identifiability | None:
        """The analysis, if it has been made, with success."""
        return self._analysis if isinstance(self._analysis, Identifiability) else None

    @property
    def analysis(self) -> Identifiability:
        """What ideal data could determine.

        Raises
        ------
        IdentifiabilityError
            If that could not be found out, now or when it was first asked for.
        """
        if self._analysis is None:
            try:
                self._analysis = analysed(
                    self.problem, time_limit=inf, effort=EFFORT
                )  # no clock decides what is sampled
            except IdentifiabilityError as error:
                self._analysis = error
        if isinstance(self._analysis, IdentifiabilityError):
            raise self._analysis
        return self._analysis

    @cached_property
    def fibre(self) -> Fibre:
        """The fibre of the likelihood; raises `IdentifiabilityError` where it is not known, or of no use."""
        if self._given:
            return self._given
        design = self.analysis.design
        if design is not None and design.contradicts:
            contradiction = (
                f"ANALYSIS AND SOLUTIONS CONTRADICT EACH OTHER: {design.expected} combinations of the parameters are "
                f"said to be identifiable, but the sensitivities of the experiments have rank {design.rank}"
            )
            warn(contradiction, stacklevel=2)
            raise IdentifiabilityError(contradiction)
        points = self.analysis.fibre_degree
        if points > MOST_POINTS:
            raise IdentifiabilityError(
                f"{points} sets of parameters have the same identifiable combinations, too many to find all of them "
                "again and again"
            )
        return fibre_of(self.problem, analysis=self.analysis)

    @cached_property
    def coarsest_fibre(self) -> tuple[Fibre, str]:
        """The coarsest fibre known to be right, and a note where that may not be the best.

        Where the data determine every parameter, or where the analysis did not come to an end, each parameter stands
        for itself: that is always right, and only slower where there is something to collapse.
        """
        note = ""
        try:
            if self._given or self.fibre.dimension or self.fibre.chart.degree > 1:
                return self.checked_fibre
        except IdentifiabilityError as error:
            note = f"the parameters are sampled as they are: {error}"
        return itself(self.problem), note

    @cached_property
    def checked_fibre(self) -> tuple[Fibre, str]:
        """The fibre, if outputs are constant on it as far as solving tells; else each parameter by itself, and why."""
        difference = largest_difference(self.posterior, self.fibre)
        if not difference:
            return self.fibre, ""
        shown = ", ".join(map(to_text, self.fibre.combinations.independent))
        note = (
            f"THE COMBINATIONS ({shown}) ARE NOT USED: outputs differ by up to {difference:.2g} of their largest value "
            "between parameters for which the combinations are the same. The parameters are sampled as they are, which "
            "is right, but slower"
        )
        warn(note, stacklevel=2)
        return itself(self.problem), note
