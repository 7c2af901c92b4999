"""`levada load`."""
