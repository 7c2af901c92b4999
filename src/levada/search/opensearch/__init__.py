"""The search index in OpenSearch, for collections that several machines serve."""
