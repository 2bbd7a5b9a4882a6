"""The gateway: ingests, records, buffers, distributes in slots, reorganizes."""
