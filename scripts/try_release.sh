#!/usr/bin/env bash
# Build a wheel from a source archive, install it with pip alone into a new environment, and fit an example from another folder.
#
#   scripts/try_release.sh PYTHON ARCHIVE FOLDER     e.g. scripts/try_release.sh python3.12 dist/equifinal-0.1.0.tar.gz dist
#
# The wheel goes into FOLDER; all else is thrown away.
set -euo pipefail
python=$1 archive=$(realpath "$2") folder=$(realpath "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export EQUIFINAL_CACHE_DIR="$work/code"

"$python" -m venv "$work/builder"
"$work/builder/bin/pip" install --quiet build
mkdir "$work/source"
tar -xzf "$archive" -C "$work/source" --strip-components 1
"$work/builder/bin/python" -m build --wheel --outdir "$work/wheel" "$work/source" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
wheel=$(echo "$work"/wheel/*.whl)
cp "$wheel" "$folder"

"$python" -m venv "$work/user"
"$work/user/bin/pip" install --quiet "$wheel"
"$work/user/bin/pip" check
mkdir "$work/elsewhere"
cd "$work/elsewhere"
"$work/user/bin/equifinal" fit si --seed 1 --quiet
test -s si-run/report.html && test -s si-run/results.nc
"$work/user/bin/equifinal" --version
echo "$(basename "$wheel"): built, installed and used with $("$python" --version)"
