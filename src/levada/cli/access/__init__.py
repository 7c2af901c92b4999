"""`levada users`, `levada keys` and `levada embed`: who may use a server."""
