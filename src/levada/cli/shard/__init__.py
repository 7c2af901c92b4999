"""`levada shard`: capture, advise, script, apply, replay, warm-up."""
