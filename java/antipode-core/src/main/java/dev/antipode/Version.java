package dev.antipode;

/** What a write made of its object: comparable within an epoch ({@link Ordered}), or not at all ({@link Opaque}). */
public sealed interface Version permits Ordered, Opaque {}
