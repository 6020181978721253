"""The rules of `e2s check`: one file each, in the folder of its family.

`index.csv` has a row for each, and `texts/` a page; `tools/check/rule.py` says what they hold.
"""
