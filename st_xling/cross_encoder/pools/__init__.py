"""A query with its candidates in several languages: what re-ranking is tested on."""
