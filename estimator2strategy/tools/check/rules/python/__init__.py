"""Code that Python itself refuses."""
