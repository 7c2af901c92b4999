"""`levada demo`."""
