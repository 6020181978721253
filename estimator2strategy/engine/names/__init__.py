"""Names that programs of TF 1.15's day use: what became of each, in tables that are read alone."""
