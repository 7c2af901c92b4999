"""Commands about stored pages: search, diff, why, trends, postings, export, warm."""
