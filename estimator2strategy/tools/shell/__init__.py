"""Help at a shell: pages of the guide, and the completion of commands."""
