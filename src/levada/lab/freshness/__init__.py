"""Freshness laboratory: policies in simulated worlds, and the tables of the EMACrawler paper."""
