"""`e2s export-step`: a folder with a training step that runs where only JAX is.

`exporting` writes the folder; `run` is the loader that is copied into it, and imports nothing of
this package.
"""
