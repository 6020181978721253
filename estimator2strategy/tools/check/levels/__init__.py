"""The levels of evidence above static: a model is recorded, compiled, replicated.

Each level is a function from a `Subject` to a `LevelReport`; `table.py` names them all. Each runs
in a process of its own (`process.py`), so that no program can hang, end or crash the check.
"""
