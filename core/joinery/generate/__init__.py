"""Generated input: arrivals, keys and payload, the same rows for the same seed, however they are asked for."""
