"""A collection in other pages: the search box for any site, and OpenSearch for browsers."""
