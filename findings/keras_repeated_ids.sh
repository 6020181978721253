#!/bin/sh
# keras 3.15.1, tensorflow-cpu 2.21.0, Python 3.11.
# Keras 3's optimizers do not sum the gradients of an id that stands twice in a batch before they
# square them: a sparse gradient gives another step than the same gradient made dense
# (tf.convert_to_tensor adds the rows). SGD squares nothing. Seen, the row of
# that id after one step on the gradients 1 and 2:
#
#   SGD: sparse -0.3000, dense -0.3000
#   Adagrad: sparse -0.1328, dense -0.0994
#   RMSprop: sparse -0.4243, dense -0.3162
#
# Ends with 0 while that is so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check keras==3.15.1 tensorflow-cpu==2.21.0 numpy==2.4.6
cat > "$folder/program.py" <<'PY'
import keras
import tensorflow as tf


def step(make, dense):
    table = keras.Variable([[0.0], [0.0]])
    gradient = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([0, 0]), tf.constant([2, 1]))
    make(0.1).apply([tf.convert_to_tensor(gradient) if dense else gradient], [table])
    return float(table[0, 0])


for make in (keras.optimizers.SGD, keras.optimizers.Adagrad, keras.optimizers.RMSprop):
    sparse, dense = step(make, False), step(make, True)
    print(f"{make.__name__}: sparse {sparse:.4f}, dense {dense:.4f}")
PY
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" 2> "$folder/log" > "$folder/seen"
cat "$folder/seen"
sed -n 's/^#   //p' "$0" | diff - "$folder/seen"
