"""Messages through clients that are killed: whether each message comes, and each delivery has its lineage."""
