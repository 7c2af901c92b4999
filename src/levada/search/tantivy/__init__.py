"""The search index on disk, by tantivy."""
