"""Parts of a page: what of it counts by the rule of its site, and what does not."""
