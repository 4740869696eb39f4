"""Shared by all layers: files that are complete or absent, locks, checks of paths, plain errors."""
