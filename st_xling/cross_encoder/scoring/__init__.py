"""Scores of many pairs, and passages in the order of their scores."""
