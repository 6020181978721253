"""`e2s migrate`: codemods that take a program from TF 1.x to TensorFlow 2, one stage at a time.

`codemods/` has one file for each codemod. Names are understood as `e2s check` does, and files are
edited as text, so that everything else stays as it was written.
"""
