"""The contract of shims: store, server, write, read, registry, epochs, envelopes, the hybrid clock."""
