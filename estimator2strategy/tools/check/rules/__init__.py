"""The rules of `e2s check`, in the folders of their families.

`index.csv` has a row for each, and `texts/` a page; `tools/check/rule.py` says what they hold.
"""
