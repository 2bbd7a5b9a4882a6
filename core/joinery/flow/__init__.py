"""How rows flow before they are joined: ingest, mini-buffers, slots."""
