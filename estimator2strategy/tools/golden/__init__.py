"""Goldens: what a model did elsewhere, and whether it still does so here."""
