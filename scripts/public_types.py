"""Whether every public name, with its attributes and methods, has a known type for those who use the package.

    uv run --with pyright python scripts/public_types.py

`pyright --verifytypes` judges every module without an underscore; what is public here are the names of
``equifinal.__all__``.
"""

from __future__ import annotations

import json
import subprocess
import sys

import equifinal
from equifinal import _HOMES


def main() -> int:
    asked = ["pyright", "--verifytypes", "equifinal", "--ignoreexternal", "--outputjson"]
    found = json.loads(subprocess.run(asked, capture_output=True, text=True).stdout)["typeCompleteness"]
    homes = [f"equifinal.{_HOMES[name].replace(':', '.')}" for name in equifinal.__all__]
    homes = [
        home if ":" in _HOMES[name] else f"{home}.{name}" for home, name in zip(homes, equifinal.__all__, strict=True)
    ]
    public = [f"equifinal.{name}" for name in equifinal.__all__] + homes
    symbols = [
        symbol
        for symbol in found["symbols"]
        if any(symbol["name"] == name or symbol["name"].startswith(f"{name}.") for name in public)
    ]
    unknown = [symbol["name"] for symbol in symbols if not symbol.get("isTypeKnown", True)]
    whole = found["completenessScore"]
    print(f"{len(symbols)} public symbols, {len(unknown)} of unknown type; with all that is inside: {whole:.1%} known")
    print(*unknown, sep="\n")
    return 1 if unknown or not symbols else 0


if __name__ == "__main__":
    sys.exit(main())
