#!/bin/sh
# tensorflow-cpu 2.21.0, Python 3.11, x86-64.
# Who is right about the sum of ten million float32 0.1 (1000000) changes with the op: the kernel of
# reduce_sum is right to 1e-6 and XLA's program for a CPU is off by 0.6 %; for batch norm's mean
# (0.1) the kernel is off by 9 %, and XLA by 0.3 %. matmul with ones is off in both. Splitting the
# sum by reshape does not help XLA, which makes one sum of the two. Seen, relative errors:
#
#   reduce_sum: kernel below 1e-5, compiled above 1e-3
#   reduce_sum of reduce_sum: kernel below 1e-5, compiled above 1e-3
#   batch norm's mean: kernel above 5e-2, compiled above 1e-3
#   matmul with ones: kernel above 1e-2, compiled above 5e-2
#
# Ends with 0 while that is so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check tensorflow-cpu==2.21.0 numpy==2.4.6
cat > "$folder/program.py" <<'PY'
import tensorflow as tf

COUNT = 10**7


def batch_mean(x):
    x, none = tf.reshape(x, [1, 1, -1, 1]), tf.zeros([0])
    made = tf.raw_ops.FusedBatchNormV3(x=x, scale=[1.0], offset=[0.0], mean=none, variance=none)
    return made.batch_mean[0] * COUNT


def with_ones(x):
    return tf.matmul(tf.reshape(x, [1, -1]), tf.ones([COUNT, 1]))[0, 0]


def in_rows(x):
    return tf.reduce_sum(tf.reduce_sum(tf.reshape(x, [-1, 1000]), 1))


def size(error):
    bounds = [bound for bound in ("1e-3", "1e-2", "5e-2") if error > float(bound)]
    return f"above {bounds[-1]}" if bounds else "below 1e-5" if error < 1e-5 else f"is {error}"


for name, function in {
    "reduce_sum": tf.reduce_sum,
    "reduce_sum of reduce_sum": in_rows,
    "batch norm's mean": batch_mean,
    "matmul with ones": with_ones,
}.items():
    x = tf.fill([COUNT], 0.1)
    compiled = tf.function(lambda x: function(x), jit_compile=True, autograph=False)
    errors = [abs(float(run(x)) / 1e6 - 1) for run in (function, compiled)]
    print(f"{name}: kernel {size(errors[0])}, compiled {size(errors[1])}")
PY
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" 2> "$folder/log" > "$folder/seen"
cat "$folder/seen"
sed -n 's/^#   //p' "$0" | diff - "$folder/seen"
