"""Text files in, files of scored pairs out; killed at any moment, the same call resumes."""
