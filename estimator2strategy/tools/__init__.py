"""Tools for programs and their results: check, migrate, record, verify, checkpoint."""
