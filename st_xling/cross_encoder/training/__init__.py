"""Recipes of cross-encoders and their training in stages."""
