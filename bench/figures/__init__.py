"""The papers' figures, from the load simulator and from real processes: `python -m bench.figures`."""
