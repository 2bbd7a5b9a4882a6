"""The truth that a run is held to: what the recorded input gives, by rules written a second time."""
