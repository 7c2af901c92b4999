"""Which grouping shares a skewed stream out best? The thesis's topology in virtual time, its tables, and every method."""
