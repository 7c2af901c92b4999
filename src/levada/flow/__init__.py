"""The way of a page: one file per step; knows ports, names no engine."""
