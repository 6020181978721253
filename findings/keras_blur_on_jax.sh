#!/bin/sh
# keras 3.15.1, jax 0.10.2, tensorflow-cpu 2.21.0, Python 3.11.
# keras.ops.image.gaussian_blur blurs along both sides of an image on TensorFlow. On JAX (and torch) only the
# middle row of its kernel is used: nothing is blurred from row to row, and an image of ones comes out with
# 0.45 in its middle. Seen, of a 5 x 5 image of ones, a 3 x 3 kernel and sigma 1:
#
#   tensorflow: middle row [0.7259, 1.0, 1.0, 1.0, 0.7259]
#   tensorflow: middle column [0.7259, 1.0, 1.0, 1.0, 0.7259]
#   jax: middle row [0.328, 0.4519, 0.4519, 0.4519, 0.328]
#   jax: middle column [0.4519, 0.4519, 0.4519, 0.4519, 0.4519]
#
# Ends with 0 while that is so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check keras==3.15.1 tensorflow-cpu==2.21.0 jax==0.10.2 numpy==2.4.6
cat > "$folder/program.py" <<'PY'
import keras
import numpy as np

blurred = keras.ops.image.gaussian_blur(np.ones((1, 5, 5, 1), "float32"), kernel_size=(3, 3), sigma=(1.0, 1.0))
image = keras.ops.convert_to_numpy(blurred)[0, :, :, 0].astype("float64").round(4)
print(f"{keras.backend.backend()}: middle row {image[2].tolist()}")
print(f"{keras.backend.backend()}: middle column {image[:, 2].tolist()}")
PY
for backend in tensorflow jax; do
    KERAS_BACKEND=$backend JAX_PLATFORMS=cpu TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" 2>> "$folder/log"
done > "$folder/seen"
cat "$folder/seen"
sed -n 's/^#   //p' "$0" | diff - "$folder/seen"
