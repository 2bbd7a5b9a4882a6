"""The windowed joins."""
