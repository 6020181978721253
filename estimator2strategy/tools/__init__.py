"""What looks at programs and at what they wrote: check, migrate, record, verify, checkpoint."""
