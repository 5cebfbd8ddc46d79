"""Observables: what scatter depends on."""

from __future__ import annotations

from pathlib import Path

from equifinal.formats.load import load
from equifinal.formats.toml_writing import problem_to_toml
from equifinal.language.expression import to_text
from equifinal.posterior.nominal import at_nominal
from tests.support.petab import FILES_1, table, write

ROW = {"lowerBound": 0.1, "upperBound": 2, "nominalValue": 0.6, "estimate": 1, "parameterScale": "log"}
SCALED = "observableParameter1_obs_a * (A + B)"
MEASURED = [
    {
        "observableId": "obs_a",
        "simulationConditionId": "c0",
        "time": time,
        "measurement": 0.7,
        "observableParameters": "scale" if time else "0.5",
        "noiseParameters": "sd;share",
    }
    for time in (0, 10)
]


def test_scatter_in_proportion_to_a_formula_is_so_to_the_output(tmp_path: Path) -> None:
    """The scale of the output is no parameter of the noise then; outputs of other rows have a scale of their own."""

    def read(noise: str, folder: str) -> tuple[list[str], tuple[str, ...], float]:
        files = {
            **FILES_1,
            "parameters.tsv": table([{"parameterId": n, **ROW} for n in ("k1", "k2", "scale", "sd", "share")]),
            "observables.tsv": table([{"observableId": "obs_a", "observableFormula": SCALED, "noiseFormula": noise}]),
            "measurements.tsv": table(MEASURED),
        }
        problem = load(write(tmp_path / folder, files))
        (experiment,) = problem.experiments
        found = at_nominal(problem)
        assert found is not None
        return [to_text(e) for e in experiment.noise_expressions.values()], experiment.noise_parameters, found[0]

    one, two = "noiseParameter1_obs_a", "noiseParameter2_obs_a"
    written_out = read(f"{one} + {two} * ({SCALED})", "written out")
    by_name = read(f"{one} + {two} * obs_a", "by name")
    something_else = read(f"{one} + {two} * observableParameter1_obs_a * (B + A + 0 * k1)", "something else")
    assert written_out == by_name
    assert written_out[0] == ["sd + share*obs_a", "sd + share*obs_a_2"]
    assert set(written_out[1]) == {"sd", "share"}
    assert "scale" in something_else[1]
    assert abs(written_out[2] - something_else[2]) < 1e-9


def test_odd_characters_in_identifiers_are_kept_in_labels(tmp_path: Path) -> None:
    """Such names cannot stand in formulas; the likelihood is that of plain names, here and once imported."""
    rows = [
        {"observableId": name, "observableFormula": "A", "noiseFormula": 0.5} for name in ("load-1 (µg)", "load 1 (µg)")
    ]
    seen = [
        {"observableId": row["observableId"], "simulationConditionId": "c0", "time": 10, "measurement": 0.1}
        for row in rows
    ]
    odd = {**FILES_1, "observables.tsv": table(rows), "measurements.tsv": table(seen)}
    plain = {
        key: text.replace("load-1 (µg)", "one").replace("load 1 (µg)", "other") if key.endswith("s.tsv") else text
        for key, text in odd.items()
    }
    problem, other = load(write(tmp_path / "odd", odd)), load(write(tmp_path / "plain", plain))
    assert len({*problem.model.outputs}) == 2
    assert {problem.labels[name].label for name in problem.model.outputs} == {"load-1 (µg)", "load 1 (µg)"}
    path = tmp_path / "own.toml"
    path.write_text(problem_to_toml(problem))
    values = [at_nominal(each) for each in (problem, other, load(path))]
    assert len({found.log_likelihood for found in values if found is not None}) == 1
    assert all(values)
