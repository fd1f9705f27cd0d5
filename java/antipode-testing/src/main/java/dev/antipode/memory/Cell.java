package dev.antipode.memory;

import dev.antipode.Version;

/**
 * An object at a server.
 *
 * @param value its value; null: it was deleted, and this is its tombstone
 * @param lineage what rests beside it; may be empty
 * @param version its version
 */
record Cell(byte[] value, String lineage, Version version) {}
