"""What every layer uses and none owns: files that are complete or absent, locks, checks of paths, plain errors."""
