"""The collector: takes the workers' results, commits them once, feeds sinks and subscribers."""
