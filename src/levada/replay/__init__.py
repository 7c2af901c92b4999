"""Replay of a query log on real servers, with the documents placed in several ways."""
