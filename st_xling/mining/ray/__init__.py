"""The same work by the workers of a ray cluster."""
