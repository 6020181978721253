"""Compiles the step of a recorded model: with XLA for CPUs, and with the TPU's compiler, `libtpu`.

Nothing here runs a step. `core_program` takes the program of one core from a recording, `kernels`
finds its ops that XLA lacks. `tpu_compiler` sends what `engine.replay.xla.lowering` makes of it
to the TPU's compiler, in a process of its own (`worker`, through `pjrt`).
"""
