"""Reruns the tables of the sources, figure beside figure."""
