#!/usr/bin/env bash
# The documentation site, in docs/_build/html: every warning and every broken link inside it is an error.
#
#   scripts/docs.sh                               runs the notebooks, if they have changed since
#   scripts/docs.sh -D nb_execution_mode=off      shows them as they are stored
set -euo pipefail
cd "$(dirname "$0")/.."
exec uv run --group docs sphinx-build --fail-on-warning --keep-going --nitpicky --quiet "$@" docs docs/_build/html
