#!/bin/sh
# keras 3.15.1, torch 2.13.0, tensorflow-cpu 2.21.0, Python 3.11.
# On the torch backend Keras pads by repeating the edge where it means something else. Average pooling with
# padding="same" leaves padding out of its means on TensorFlow (and JAX); on torch, where the two sides get
# unequal padding, it repeats the edge and averages that too. And ops.pad(mode="symmetric"), which mirrors the
# array, repeats its last value. Seen:
#
#   tensorflow: mean of 4 of 1..5 [2.0, 2.5, 3.5, 4.0, 4.5]
#   tensorflow: symmetric [2.0, 1.0, 1.0, 2.0, 3.0, 3.0, 2.0]
#   torch: mean of 4 of 1..5 [1.75, 2.5, 3.5, 4.25, 4.75]
#   torch: symmetric [1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0]
#
# Ends with 0 while that is so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check \
    keras==3.15.1 tensorflow-cpu==2.21.0 torch==2.13.0 numpy==2.4.6 --extra-index-url https://download.pytorch.org/whl/cpu
cat > "$folder/program.py" <<'PY'
import keras
import numpy as np


def show(name, values):
    values = keras.ops.convert_to_numpy(values).ravel().tolist()
    print(f"{keras.backend.backend()}: {name} {values}")


row = np.arange(1, 6, dtype="float32").reshape(1, 5, 1)
show("mean of 4 of 1..5", keras.layers.AveragePooling1D(4, strides=1, padding="same")(row))
show("symmetric", keras.ops.pad(np.array([1, 2, 3], "float32"), [[2, 2]], mode="symmetric"))
PY
for backend in tensorflow torch; do
    KERAS_BACKEND=$backend JAX_PLATFORMS=cpu TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" 2>> "$folder/log"
done > "$folder/seen"
cat "$folder/seen"
sed -n 's/^#   //p' "$0" | diff - "$folder/seen"
