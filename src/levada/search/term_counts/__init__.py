"""Term counts: how many documents hold each term, and how often terms were added."""
