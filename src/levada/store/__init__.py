"""Where a collection lives: what every store offers, and the stores on SQLite, PostgreSQL, memory and shards."""
