"""Aligned pairs → what is trained on: negatives, XPI's mixed-language set, the strategies of re-ranking."""
