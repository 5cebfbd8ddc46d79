"""Whether every name that has no underscore, with its attributes and methods, has a known type for those who use it.

    uv run --with pyright python scripts/public_types.py

That is `pyright --verifytypes` of all modules, not only of the names in ``equifinal.__all__``; types that come from
packages without annotations (Numba, python-flint) are theirs to know.
"""

from __future__ import annotations

import json
import subprocess
import sys


def main() -> int:
    asked = ["pyright", "--verifytypes", "equifinal", "--ignoreexternal", "--outputjson"]
    found = json.loads(subprocess.run(asked, capture_output=True, text=True).stdout)["typeCompleteness"]
    symbols = [symbol for symbol in found["symbols"] if symbol["isExported"]]
    unknown = [symbol["name"] for symbol in symbols if not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]]
    print(f"{len(symbols)} names, {len(unknown)} of unknown or ambiguous type: {found['completenessScore']:.1%} known")
    print(*unknown, sep="\n")
    return 1 if unknown or not symbols else 0


if __name__ == "__main__":
    sys.exit(main())
