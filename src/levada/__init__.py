"""Levada keeps a large collection of web pages fresh and searchable within a fetch budget."""

__version__ = "0.3.0"
