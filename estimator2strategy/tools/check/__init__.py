"""`e2s check`: what in a program will not run, or will mean something else, and where.

    e2s check program.py model/        # reads source; nothing is imported or run

Nothing in this package imports TensorFlow.
"""
