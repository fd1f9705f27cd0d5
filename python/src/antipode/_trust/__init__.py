"""Who is believed and who may see a lineage: trust, seals, addresses."""
