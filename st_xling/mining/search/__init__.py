"""The exact search: one pass over the cosines of two sides, in bounded memory."""
