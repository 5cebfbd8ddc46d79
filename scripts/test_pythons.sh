#!/usr/bin/env bash
# Tests on each Python that is installed here, and on the oldest dependencies that pyproject.toml allows.
#
#   scripts/test_pythons.sh                       all of them, with tests that touch every dependency
#   scripts/test_pythons.sh 3.13 oldest -- tests  some of them, with pytest arguments of your own
#
# Interpreters are taken from the path or from pyenv; none is downloaded. Environments and compiled code are new each
# time and thrown away.
set -euo pipefail
cd "$(dirname "$0")/.."
export UV_PYTHON_DOWNLOADS=never

wanted=()
while [ $# -gt 0 ] && [ "$1" != "--" ]; do wanted+=("$1"); shift; done
[ ${#wanted[@]} -gt 0 ] || wanted=(3.11 3.12 3.13 oldest)
[ $# -eq 0 ] || shift
tests=("$@")
[ ${#tests[@]} -gt 0 ] || tests=(tests/cli tests/samplers/running tests/identifiability tests/plots tests/report tests/ode)

interpreter() {  # of a version, if one runs: a shim may only pretend
  local candidate
  for candidate in "$(command -v "python$1" || true)" "$HOME/.pyenv/versions/$1".*/bin/python; do
    if [ -n "$candidate" ] && "$candidate" -c "" 2>/dev/null; then echo "$candidate"; return; fi
  done
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=()
for name in "${wanted[@]}"; do
  python=$(interpreter "${name/oldest/3.11}")
  if [ -z "$python" ]; then echo "== $name: no such Python here"; continue; fi
  export VIRTUAL_ENV="$folder/$name" EQUIFINAL_CACHE_DIR="$folder/$name/code"
  uv venv --quiet --python "$python" "$VIRTUAL_ENV"
  # the oldest of what is asked for directly: a built wheel, or the package as a requirement, would lower nothing
  resolution=$([ "$name" = oldest ] && echo lowest-direct || echo highest)
  uv pip install --quiet --resolution "$resolution" --requirements pyproject.toml --group dev
  uv pip install --quiet --no-deps --editable .
  echo "== $name: $("$python" --version)"
  "$VIRTUAL_ENV/bin/python" -m pytest -n 1 "${tests[@]}" || failed+=("$name")
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
