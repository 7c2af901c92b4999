"""Sharding laboratory: the ads and queries of the paper, and its tables."""
