"""Task stores: the tasks of a load in SQLite, PostgreSQL or Redis."""
