"""The codemods: one file each, which registers itself (`migrate/codemod.py`)."""
