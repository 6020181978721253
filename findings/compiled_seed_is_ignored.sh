#!/bin/sh
# tensorflow-cpu 2.21.0, Python 3.11, x86-64.
# In a function with jit_compile=True, tf.random.uniform ignores its seed and tf.random.set_seed:
# two functions made after the same set_seed draw different numbers, and so do two ops of one seed.
# Yet a fresh process repeats all of them. A stateless draw has the same integers as in a graph, and
# other floats. Seen:
#
#   graph: again after set_seed True, two ops of one seed True
#   compiled: again after set_seed False, two ops of one seed False
#   compiled, a second process: the same numbers True
#   stateless: integers equal True, floats equal False
#
# Ends with 0 while that is so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check tensorflow-cpu==2.21.0 numpy==2.4.6
cat > "$folder/program.py" <<'PY'
import subprocess
import sys

import tensorflow as tf


def drawn(compiled):
    tf.random.set_seed(1)
    draw = tf.function(lambda: tf.random.uniform([3], seed=7), jit_compile=compiled, autograph=False)
    return draw().numpy().tolist()


def twice(compiled):
    def two():
        # What set_seed(1) and seed=7 make.
        ops = [tf.raw_ops.RandomUniform(shape=[3], dtype=tf.float32, seed=1, seed2=7) for _ in "12"]
        return tf.reduce_all(ops[0] == ops[1])

    return bool(tf.function(two, jit_compile=compiled, autograph=False)())


def stateless(compiled):
    def both(seed):
        whole = tf.random.stateless_uniform([3], seed, 0, 100, tf.int32)
        return whole, tf.random.stateless_uniform([3], seed)

    values = tf.function(both, jit_compile=compiled, autograph=False)(tf.constant([1, 2]))
    return [value.numpy().tolist() for value in values]


first = drawn(True)
if sys.argv[1:]:
    print(first)
    sys.exit()
for name, compiled in {"graph": False, "compiled": True}.items():
    again = drawn(compiled) == drawn(compiled)
    print(f"{name}: again after set_seed {again}, two ops of one seed {twice(compiled)}")
second = subprocess.run([sys.executable, __file__, "-"], stdout=subprocess.PIPE, text=True).stdout
print("compiled, a second process: the same numbers", second.strip() == str(first))
integers, floats = zip(stateless(False), stateless(True))
print("stateless: integers equal", integers[0] == integers[1], end=", ")
print("floats equal", floats[0] == floats[1])
PY
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" 2> "$folder/log" > "$folder/seen"
cat "$folder/seen"
sed -n 's/^#   //p' "$0" | diff - "$folder/seen"
