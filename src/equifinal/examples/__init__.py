"""Bundled problems: files that a user can read, run by name and copy."""

from __future__ import annotations

import shutil
from pathlib import Path

from equifinal.errors import DataError, did_you_mean

FOLDER = Path(__file__).parent

# name: what it shows
EXAMPLES = {
    "si": "SI epidemic, simulated: four parameters, of which the data determine three combinations",
    "hiv": "HIV in the blood, simulated: six parameters, two of them determined only as a product",
    "oral": "An oral drug dose, simulated: absorption and elimination may be exchanged",
    "influenza": "Influenza in an English boarding school, 1978: SIR with a reporting fraction, real data",
    "theophylline": "One oral dose of theophylline with a lag, real data: fraction and volume only as a quotient",
    "doses": "Repeated oral doses and an infusion, simulated: the infusion tells apart what the doses cannot",
    "treatment": "HIV treated from a known day on, simulated: loads below 50 copies are censored",
    "mrna": "Fluorescence after mRNA transfection, real data: unknown onset, two exchangeable rates",
    "seasonal": "A seasonally forced SIRS epidemic, simulated: the forcing is a cosine of time",
    "signalling": "A receptor at rest until it is stimulated, simulated: two outputs with unknown scale and offset",
}


def example_path(name: str) -> Path:
    """The problem file of a bundled example."""
    if name not in EXAMPLES:
        raise DataError(f"there is no example '{name}'{did_you_mean(name, EXAMPLES)} (examples: {', '.join(EXAMPLES)})")
    return FOLDER / f"{name}.toml"


def find_problem(file_or_example: str) -> Path:
    """A problem file by its path, or a bundled example by its name."""
    path = Path(file_or_example)
    if (path.exists() and not (path.is_dir() and file_or_example in EXAMPLES)) or path.suffix or len(path.parts) > 1:
        return path
    if file_or_example in EXAMPLES:
        return example_path(file_or_example)
    hint = did_you_mean(file_or_example, EXAMPLES)
    raise DataError(f"'{file_or_example}' is neither a file nor an example{hint} (examples: {', '.join(EXAMPLES)})")


def copy_example(name: str, to: str | Path) -> list[Path]:
    """Copy the files of an example to a folder; it is an error if one of them exists there already."""
    source = example_path(name)
    files = [source, *FOLDER.glob(f"{name}.csv")]
    folder = Path(to)
    targets = [folder / file.name for file in files]
    present = [str(target) for target in targets if target.exists()]
    if present:
        raise DataError(
            f"{' and '.join(present)} already exist{'s' * (len(present) == 1)}; choose another folder (`to`)"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, target in zip(files, targets, strict=True):
            shutil.copyfile(file, target)
    except OSError as error:
        raise DataError(f"cannot write to {folder}: {error.strerror or error}") from None
    return targets
