"""Source as `e2s check` and `e2s migrate` read it: files, names and what they mean; nothing runs.

Whatever is found out about a file is kept in it or in its project, and dies with them.
"""
