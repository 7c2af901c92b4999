"""Grouping laboratory: every method on skewed streams, and the tables of the thesis."""
