#!/bin/sh
# pip 23.2.1 and 24.0 (packaging 21.3), pip 26.3, Python 3.11.
# `<=3.7.*` is no version specifier: PEP 440 allows `.*` after == and != alone. Until 24.0 pip takes it
# without a word, and orders "3.7.*" before 3.7. So "at most 3.7" brings 3.6, and takes an installed
# 3.7 away. Later pips refuse it. Installed were, with idna 3.7 there before:
#
#   pip 23.2.1, idna<=3.7.*: idna 3.6
#   pip 24.0, idna<=3.7.*: idna 3.6
#   pip 24.0, idna==3.7.*: idna 3.7
#   pip 26.3, idna<=3.7.*: refused, idna 3.7
#
# Ends with 0 while that is so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
python="$folder/venv/bin/python"

tried() { # pip's release, requirement
  "$python" -m pip install -q --disable-pip-version-check "pip==$1"
  "$python" -m pip install -q --disable-pip-version-check idna==3.7
  said=
  "$python" -m pip install -q --disable-pip-version-check "$2" >> "$folder/log" 2>&1 || said="refused, "
  echo "pip $1, $2: ${said}idna $("$python" -c 'from importlib.metadata import version as v; print(v("idna"))')"
}

{
  tried 23.2.1 'idna<=3.7.*'
  tried 24.0 'idna<=3.7.*'
  tried 24.0 'idna==3.7.*'
  tried 26.3 'idna<=3.7.*'
} > "$folder/seen"
sed -n 's/^#   //p' "$0" > "$folder/expected"
cat "$folder/seen"
diff "$folder/expected" "$folder/seen"
