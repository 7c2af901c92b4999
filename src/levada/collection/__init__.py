"""A collection: its folder, its parts, and what is done with it."""
