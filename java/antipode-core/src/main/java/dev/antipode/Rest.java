package dev.antipode;

/** Where a lineage rests beside its value (SHIM-9). */
public enum Rest {
  /** In a field of the value. */
  FIELD,
  /** Round the value, which is read through the shim only (SHIM-34). */
  ENVELOPE,
  /** In the store's own place for such things. */
  NATIVE
}
