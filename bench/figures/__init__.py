"""The papers' figures, drawn from the load simulator: `python -m bench.figures`."""
