"""Exported steps on an accelerator, beside hand-written JAX steps of the same mathematics.

python -m benchmarks.device.export              # here, with TensorFlow: writes build/device/
python benchmarks/device/measure.py             # there, with JAX alone: at most 6 minutes
"""
