"""A small PEtab problem, A <-> B, in files that a test may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.sbml import parameter, reaction, sbml, species

MODEL = sbml(
    species=species("A", 'initialConcentration="1"') + species("B", 'initialConcentration="0"'),
    parameters=parameter("k1", 0.8) + parameter("k2", 0.6),
    reactions=reaction("forward", "(* k1 A)", "A", "B") + reaction("backward", "(* k2 B)", "B", "A"),
)
YAML_1 = """format_version: 1
parameter_file: parameters.tsv
problems:
- condition_files: [conditions.tsv]
  measurement_files: [measurements.tsv]
  observable_files: [observables.tsv]
  sbml_files: [model.xml]
"""
YAML_2 = """format_version: 2.0.0
parameter_files: [parameters.tsv]
model_files:
  m: {location: model.xml, language: sbml}
measurement_files: [measurements.tsv]
observable_files: [observables.tsv]
condition_files: [conditions.tsv]
experiment_files: [experiments.tsv]
"""
Table = Sequence[Mapping[str, object]]


def table(rows: Table) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["\t".join(columns)] + ["\t".join(str(row.get(column, "")) for column in columns) for row in rows]
    return "\n".join(lines) + "\n"


FILES_1: dict[str, str] = {
    "problem.yaml": YAML_1,
    "model.xml": MODEL,
    "parameters.tsv": table(
        [
            {
                "parameterId": "k1",
                "parameterScale": "lin",
                "lowerBound": 0.1,
                "upperBound": 2,
                "nominalValue": 0.8,
                "estimate": 1,
            },
            {
                "parameterId": "k2",
                "parameterScale": "log10",
                "lowerBound": 0.1,
                "upperBound": 2,
                "nominalValue": 0.6,
                "estimate": 1,
            },
        ]
    ),
    "conditions.tsv": table([{"conditionId": "c0", "A": 1}]),
    "observables.tsv": table([{"observableId": "obs_a", "observableFormula": "A", "noiseFormula": 0.5}]),
    "measurements.tsv": table(
        [
            {"observableId": "obs_a", "simulationConditionId": "c0", "time": 0, "measurement": 0.7},
            {"observableId": "obs_a", "simulationConditionId": "c0", "time": 10, "measurement": 0.1},
        ]
    ),
}
FILES_2: dict[str, str] = {
    **FILES_1,
    "problem.yaml": YAML_2,
    "parameters.tsv": table(
        [
            {"parameterId": "k1", "lowerBound": 0.1, "upperBound": 2, "nominalValue": 0.8, "estimate": "true"},
            {"parameterId": "k2", "lowerBound": 0.1, "upperBound": 2, "nominalValue": 0.6, "estimate": "true"},
        ]
    ),
    "conditions.tsv": table([{"conditionId": "c0", "targetId": "A", "targetValue": 1}]),
    "experiments.tsv": table([{"experimentId": "e0", "time": 0, "conditionId": "c0"}]),
    "measurements.tsv": table(
        [
            {"observableId": "obs_a", "experimentId": "e0", "time": 0, "measurement": 0.7},
            {"observableId": "obs_a", "experimentId": "e0", "time": 10, "measurement": 0.1},
        ]
    ),
}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write the files; the path of the problem."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder / "problem.yaml"
