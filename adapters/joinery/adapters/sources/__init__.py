"""Built-in sources: producers inside the gateway's process that read files, Redis Streams, or make rows up."""

from joinery.adapters.sources.opening import open_sources
from joinery.adapters.sources.source import Source

__all__ = ["Source", "open_sources"]
