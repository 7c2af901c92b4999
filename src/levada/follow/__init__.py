"""Followers of the change log: index, term counts, feed, notifiers."""
