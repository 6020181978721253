"""`e2s export-step`: a folder with a training step that runs where only JAX is.

`step_export` writes the folder; `step_loader` is copied into it as `run.py`, and imports nothing
of this package.
"""
