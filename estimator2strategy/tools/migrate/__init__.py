"""`e2s migrate`: codemods that take a program from TF 1.x to TensorFlow 2, one stage at a time.

`codemods/` has one file for each codemod. Names are understood as `e2s check` does, and files are
edited with libcst, which keeps everything else as it was written.
"""
