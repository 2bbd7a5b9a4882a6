"""What is kept of a stream, for how long, and what its watermark says."""
