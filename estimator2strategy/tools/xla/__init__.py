"""The step of a recorded model, given to compilers: XLA's for CPUs, and the TPU's in `libtpu`.

Nothing here runs a step. `core_program` says what one core runs, `kernels` which of its ops XLA
does not have, `lowering` makes XLA's program of it; `tpu_compiler` sends that to the TPU compiler,
in a process of its own (`worker`, through `pjrt`).
"""
