"""The wrong usages, by what is used; `tests/hostile/wrong_usages.py` has them all."""
