"""Adapters: the wire, stores, sinks, sources and links around the machines of the core."""
