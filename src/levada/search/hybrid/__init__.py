"""Hybrid search: pages near a query in meaning, beside those with its words."""
