#!/bin/sh
# jax and jaxlib 0.10.2 on a CPU, Python 3.11, x86-64.
# A training step with a convolution takes many times as long in fori_loop as when Python calls the
# same step each time: XLA's CPU compiler has its fast convolutions outside of loops alone. A step
# with a matrix product does not differ. Seen, with 25 for the convolution:
#
#   convolution: in a loop more than 4 times as long: True
#   matrix product: in a loop more than 4 times as long: False
#
# Ends with 0 while that is so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/program.py" <<'PY'
import time

import jax
import jax.numpy as jnp

STEPS = 8


def convolution(x, w):
    names = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=names)


CASES = {
    "convolution": (convolution, jnp.ones((64, 28, 28, 1)), jnp.ones((5, 5, 1, 32)) * 0.01),
    "matrix product": (jnp.matmul, jnp.ones((512, 1024)), jnp.ones((1024, 1024)) * 0.01),
}


def seconds(run):
    run().block_until_ready()  # compiles
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        run().block_until_ready()
        times.append(time.perf_counter() - begin)
    return min(times)


for name, (product, x, w) in CASES.items():
    gradient = jax.grad(lambda w, x: (product(x, w) ** 2).mean())
    step = jax.jit(lambda w, x: w - 0.1 * gradient(w, x))
    loop = jax.jit(lambda w, x: jax.lax.fori_loop(0, STEPS, lambda _, w: step(w, x), w))
    ratio = seconds(lambda: loop(w, x)) / STEPS / seconds(lambda: step(w, x))
    print(f"{name}: in a loop more than 4 times as long: {ratio > 4}")
PY
JAX_PLATFORMS=cpu "$folder/venv/bin/python" "$folder/program.py" > "$folder/seen" 2> "$folder/log" || { cat "$folder/log" >&2; exit 1; }
sed -n 's/^#   //p' "$0" > "$folder/expected"
cat "$folder/seen"
diff "$folder/expected" "$folder/seen"
