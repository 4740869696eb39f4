"""Text files in, files of pairs out; killed, it goes on."""
