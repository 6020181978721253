#!/bin/sh
# jax and jaxlib 0.10.2, Python 3.11.
# jax.export.export works after `pip install jax`, and what it returns can be called, but
# .serialize() needs the package flatbuffers, which jax does not require. Seen:
#
#   exported and called: 6.0
#   serialize: ModuleNotFoundError or ImportError, about flatbuffers: True
#   with flatbuffers installed: bytes
#
# Ends with 0 while that is so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
pip="$folder/venv/bin/pip install -q --disable-pip-version-check"
$pip jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/program.py" <<'PY'
import sys

import jax
from jax import export

exported = export.export(jax.jit(lambda x: 2 * x))(jax.ShapeDtypeStruct((), "float32"))
if sys.argv[1:]:
    print("with flatbuffers installed:", type(bytes(exported.serialize())).__name__)
    sys.exit()
print("exported and called:", exported.call(3.0))
try:
    exported.serialize()
    print("serialize: works")
except ImportError as error:
    about = "flatbuffers" in str(error)
    print("serialize: ModuleNotFoundError or ImportError, about flatbuffers:", about)
PY
{
    "$folder/venv/bin/python" "$folder/program.py"
    $pip flatbuffers==25.12.19
    "$folder/venv/bin/python" "$folder/program.py" again
} > "$folder/seen"
cat "$folder/seen"
sed -n 's/^#   //p' "$0" | diff - "$folder/seen"
