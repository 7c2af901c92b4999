"""Forgetting pages, sites and versions, what is left of them, and which versions are kept."""
