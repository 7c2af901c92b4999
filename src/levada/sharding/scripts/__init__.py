"""Scripts that make a database shard by an advised key."""
