"""Makes the ads and queries of the sharding paper, and reruns its tables."""
