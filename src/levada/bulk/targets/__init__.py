"""Targets: maps that a load can fill, in LMDB files and in Redis."""
