"""The codemods, a file for each topic; each registers itself (`migrate/codemod.py`)."""
