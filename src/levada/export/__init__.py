"""Exports of stored pages: one streaming module per format."""
