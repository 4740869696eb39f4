"""Files that are there whole or not at all, and the folder in which a long command keeps its work."""
