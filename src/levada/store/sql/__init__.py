"""The SQL store: what SQLite and PostgreSQL share, over a small dialect. Locking is each database's own."""
