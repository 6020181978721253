"""`e2s export-for`: exported models, rewritten for other readers."""
