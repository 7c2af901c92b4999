"""Capture of queries: from the traffic, logs and statistics of MongoDB and PostgreSQL, and from Levada itself."""
