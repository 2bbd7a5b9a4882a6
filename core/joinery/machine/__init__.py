"""The protocol as pure machines: facts in, orders out (docs/protocol.md)."""
