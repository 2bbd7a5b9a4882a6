"""Sinks: files, Redis Streams, the standard output, a counter; each keeps the contract of `ports.Sink`."""

from joinery.adapters.sinks.opening import open_sinks, recording_sink, stream_targets

__all__ = ["open_sinks", "recording_sink", "stream_targets"]
