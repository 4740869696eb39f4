"""From which score on a pair is worth keeping: by gold, or by translations planted in the text."""
