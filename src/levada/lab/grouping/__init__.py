"""Which grouping shares a skewed stream out best? The thesis's topology, its tables, and every method."""
