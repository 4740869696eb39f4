"""Neighbours from near cells only, for sides too large to compare all with all."""
