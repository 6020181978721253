#!/bin/sh
# keras 3.15.1, jax 0.10.2, torch 2.13.0, tensorflow-cpu 2.21.0, Python 3.11.
# A label that repeats a class needs a blank between: [1, 1] does not fit into two frames, as happens at the end
# of real recordings. The probability is 0, the loss infinite: torch says so, TensorFlow and JAX each return
# another finite number, which enters the mean of the batch. Seen, beside a label that fits:
#
#   tensorflow: too long 707.7, fits 2.1972
#   jax: too long 100000.0, fits 2.1972
#   torch: too long inf, fits 2.1972
#
# Ends with 0 while that is so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check \
    keras==3.15.1 tensorflow-cpu==2.21.0 jax==0.10.2 torch==2.13.0 numpy==2.4.6 \
    --extra-index-url https://download.pytorch.org/whl/cpu
cat > "$folder/program.py" <<'PY'
import keras
import numpy as np


def loss(labels):
    lengths = np.array([len(labels)], "int32"), np.array([2], "int32")
    value = keras.ops.ctc_loss(np.array([labels], "int32"), np.zeros((1, 2, 3), "float32"), *lengths, mask_index=0)
    return round(float(value[0]), 1 if float(value[0]) > 100 else 4)


print(f"{keras.backend.backend()}: too long {loss([1, 1])}, fits {loss([1, 2])}")
PY
for backend in tensorflow jax torch; do
    KERAS_BACKEND=$backend JAX_PLATFORMS=cpu TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" 2>> "$folder/log"
done > "$folder/seen"
cat "$folder/seen"
sed -n 's/^#   //p' "$0" | diff - "$folder/seen"
