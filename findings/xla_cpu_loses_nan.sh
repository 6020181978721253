#!/bin/sh
# tensorflow-cpu 2.21.0, Python 3.11, x86-64.
# XLA's programs for a CPU lose a NaN in reduce_max, and maximum is not symmetric: maximum(1, nan)
# is 1, maximum(nan, 1) is nan. The kernels of TensorFlow, and XLA with
# --xla_cpu_enable_fast_min_max=false, give nan each time. Seen:
#
#   kernel             reduce_max nan  maximum(1, nan) nan  maximum(nan, 1) nan
#   compiled           reduce_max 1.0  maximum(1, nan) 1.0  maximum(nan, 1) nan
#   compiled, not fast reduce_max nan  maximum(1, nan) nan  maximum(nan, 1) nan
#
# Ends with 0 while that is so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check tensorflow-cpu==2.21.0 numpy==2.4.6
cat > "$folder/program.py" <<'PY'
import sys

import tensorflow as tf

name, compiled = sys.argv[1], sys.argv[1] != "kernel"


def of(function, *args):
    run = tf.function(function, jit_compile=True, autograph=False) if compiled else function
    return run(*map(tf.constant, args)).numpy()


nan = float("nan")
largest = of(lambda x: tf.reduce_max(x), [nan, 1.0])
second, first = of(lambda x, y: tf.maximum(x, y), 1.0, nan), of(lambda x, y: tf.maximum(x, y), nan, 1.0)
print(f"{name:<18} reduce_max {largest}  maximum(1, nan) {second}  maximum(nan, 1) {first}")
PY
run() { TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" "$1" 2> "$folder/log"; }
{
    run kernel
    run compiled
    XLA_FLAGS=--xla_cpu_enable_fast_min_max=false run "compiled, not fast"
} > "$folder/seen"
cat "$folder/seen"
sed -n 's/^#   //p' "$0" | diff - "$folder/seen"
