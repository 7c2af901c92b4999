"""Commands that try one part alone: freshness, group."""
