"""What a hostile world brings, as tables of cases, and what must come of each.

    python -m tests.hostile             # runs all tables, and writes migration_guide/hostile.md

A table is a module here, named in `__main__`. A mistake that a user makes is one more row.
"""
