"""Files of strangers: what of them may be opened, and how they may be shown."""
