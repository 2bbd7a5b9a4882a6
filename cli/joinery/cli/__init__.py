"""The command `joinery`."""
