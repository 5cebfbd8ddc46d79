"""Charts of all models with a fibre: hand-made ones, and those of the shared collection."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.fibre.homotopy import GeneralChart
from equifinal.identifiability.analysis import analyse
from tests.support.charts import check_chart, check_outputs, fibre_of
from tests.support.collection import ENTRIES, analysed_entry, model_of, needs_collection, slow_if_long
from tests.support.zoo import ZOO, known

HAND_MADE = [entry for entry in ZOO if len(entry.functions) < len(entry.model.parameters) or entry.degree > 1]


@pytest.mark.parametrize("entry", HAND_MADE, ids=lambda entry: entry.name)
def test_hand_made_models(entry):
    result = analyse(entry.model)
    fibre = fibre_of(result)
    assert fibre.chart.kind in ("rational", "quadratic")
    assert fibre.chart.degree == entry.degree
    check_chart(fibre)
    check_outputs(entry.model, fibre)


# entries of the shared collection in which several parameter vectors give the same output
OTHERS = """
    SI_sis_known_N SI_reduced SIR_unknown_N SEIR_unknown_N_E0zero SEIR_unknown_all_ICs HIV_T0ss_Ts0zero_V0known
    HIV_all_unknown Goodwin_x2x3known
"""
IDFUNCS = """
    03 05 07 08 12 13 15 19 27 30 31 32 35 42 43 44 45 46 47 48 49 53 54
"""
BENCH = """
    Akt_pathway CGV1990 Fujita HIV2_io KD1999 LLW1987_io Modified_LV_for_testing PK1 Pivastatin
    SEAIJRC_Covid_model SEIR_34 SEIR_36_ref SEIRT SEIR_1_io SIR_21 SIR_24 SIR_6 SLIQR Transfection_4State
    Treatment_io cLV1_(2o) generalizedLoktaVolterra_(1o)
"""
WITH_FIBRE = {
    *OTHERS.split(),
    *(f"sijl_idfuncs_{n}" for n in IDFUNCS.split()),
    *(f"sijl_bench_{n}" for n in BENCH.split()),
}
CHOSEN = [e for e in ENTRIES if e["name"] in WITH_FIBRE]


def test_the_shared_models_are_all_there():
    assert not ENTRIES or len(CHOSEN) == len(WITH_FIBRE)


@needs_collection
@pytest.mark.parametrize("entry", slow_if_long(CHOSEN), ids=lambda entry: entry["name"])
def test_shared_models(entry):
    model = model_of(entry)
    result = analysed_entry(entry)
    fibre = fibre_of(result)
    assert fibre.chart.kind != "general"
    assert fibre.chart.degree == result.fibre_degree
    check_chart(fibre)
    check_outputs(model, fibre)


@pytest.mark.parametrize("name", ["HIV, all initial values unknown", "SEIR, I observed", "sum of exponentials"])
def test_general_solver_on_models_with_a_closed_form(name):
    """The same roots by homotopy."""
    fibre = fibre_of(analyse(known(name).model))
    closed = fibre.chart
    free = [fibre.names[k] for k in closed.free]
    fibre.chart = GeneralChart(fibre.combinations, free, closed.degree, fibre.bounds, fibre.prior_draws)
    check_chart(fibre, 200)


@pytest.mark.parametrize(("roots", "functions"), [(3, ("e1", "e2", "e3")), (2, ("p", "q"))])
def test_general_solver_counts(roots, functions):
    """Symmetric functions of three unknowns have six roots, a quartic pair four."""
    from equifinal.fibre import Fibre
    from equifinal.problem.prior import Prior

    text = {"e1": "x + y + z", "e2": "x*y + y*z + z*x", "e3": "x*y*z", "p": "x^2 + y^2", "q": "x*y + x"}
    names = "xyz"[:roots]
    fibre = Fibre([text[f] for f in functions], {n: Prior("uniform", lower=0.1, upper=2) for n in names})
    degree = fibre.chart.degree
    assert degree == {3: 6, 2: 4}[roots]
    check_chart(fibre, 300)
    fibre.chart = GeneralChart(fibre.combinations, [], degree, fibre.bounds, fibre.prior_draws)
    check_chart(fibre, 100)


def test_points_of_a_batch_do_not_depend_on_each_other():
    """A point of which nothing is known, before one whose determinant underflows."""
    from equifinal.fibre import Fibre
    from equifinal.problem.prior import Prior

    fibre = Fibre(["a/b", "a"], {n: Prior("halfnormal", sd=1) for n in "ab"})
    c = np.array([[np.nan, 1.0], [1e-300, 1.0], [1.0, 1.0]])
    free = np.empty((len(c), 0))
    together = fibre.roots(free, c).status
    assert together.tolist() == [int(fibre.roots(free[:1], row).status[0]) for row in c] == [1, 1, 0]
