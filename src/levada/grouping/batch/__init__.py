"""Groupings over arrays: the same decisions as record by record, in compiled loops."""
