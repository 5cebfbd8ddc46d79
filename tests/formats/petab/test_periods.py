"""What conditions set at the beginning of a period, in A' = u + k2 - k1 A."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from equifinal.errors import DataError
from equifinal.formats.load import load
from equifinal.prediction.simulate import simulate
from tests.support.petab import FILES_2, table, write
from tests.support.sbml import parameter, reaction, sbml, species

MODEL = sbml(
    species=species("A", 'initialConcentration="1"'),
    parameters=parameter("k1", 0.8) + parameter("k2", 0.6) + parameter("u", 0.5),
    reactions=reaction("out", "(* k1 A)", "A") + reaction("in", "(+ u k2)", "", "A"),
)
REST = ("rest", "u", 0.2)  # where A is 1


def outputs(folder: Path, conditions: list[tuple[str, str, object]], periods: list[tuple[object, str]]) -> list[float]:
    """A at times 0 and 1."""
    bounds = {"lowerBound": 0.1, "upperBound": 2, "estimate": "true"}
    seen = {"observableId": "obs_a", "experimentId": "e", "measurement": 1}
    files = {
        **FILES_2,
        "model.xml": MODEL,
        "parameters.tsv": table(
            [
                {"parameterId": "k1", "nominalValue": 0.8, **bounds},
                {"parameterId": "k2", "nominalValue": 0.6, **bounds},
            ]
        ),
        "observables.tsv": table([{"observableId": "obs_a", "observableFormula": "A", "noiseFormula": 1}]),
        "measurements.tsv": table([{**seen, "time": 0}, {**seen, "time": 1}]),
        "conditions.tsv": table([{"conditionId": c, "targetId": t, "targetValue": v} for c, t, v in conditions]),
        "experiments.tsv": table([{"experimentId": "e", "time": t, "conditionId": c} for t, c in periods]),
    }
    problem = load(write(folder, files))
    return list(simulate(problem, dict(problem.nominal), times=[0.0, 1.0])[0].outputs["obs_a"])


def after(start: float, u: float) -> float:
    return start * math.exp(-0.8) + (u + 0.6) / 0.8 * (1 - math.exp(-0.8))


@pytest.mark.parametrize(
    ("conditions", "start", "u"),
    [
        ([("then", "u", 3)], 1, 3),
        ([("then", "u", "u + 1")], 1, 1.2),
        ([("then", "u", 3), ("then", "A", "A + u")], 1.2, 3),  # the old u
        ([("then", "u", "k2 + 1"), ("then", "A", "A + 2*u")], 1.4, 1.6),
        ([("then", "u", "k2 + A"), ("then", "A", 4)], 4, 1.6),  # the old A
        ([("then", "u", "k2"), ("then", "A", "k1")], 0.8, 0.6),
    ],
)
def test_everything_is_computed_from_what_was_before(
    tmp_path: Path, conditions: list[tuple[str, str, object]], start: float, u: float
) -> None:
    found = outputs(tmp_path, [REST, *conditions], [("-inf", "rest"), (0, "then")])
    assert found == pytest.approx([start, after(start, u)], rel=1e-4)


@pytest.mark.parametrize(("target", "value", "name"), [("A", "A + 1", "A"), ("u", "k2 + u", "u")])
def test_at_first_nothing_in_the_model_has_a_value(tmp_path: Path, target: str, value: str, name: str) -> None:
    words = f"conditions.tsv, row 2: in the first period of an experiment \\('e'\\), .* which '{name}' is not"
    with pytest.raises(DataError, match=words):
        outputs(tmp_path, [("first", target, value)], [(0, "first")])
    assert outputs(tmp_path, [("first", target, "k1 + k2")], [(0, "first")])
