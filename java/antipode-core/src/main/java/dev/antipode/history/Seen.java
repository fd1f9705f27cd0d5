package dev.antipode.history;

import dev.antipode.Key;
import dev.antipode.WriteId;

/**
 * What a read found under one key.
 *
 * @param key the key
 * @param value the digest of what it holds, {@link ValueDigest#GONE}, or null where nobody knows
 * @param version the write that the value itself is, exactly, where the value says so; else null
 */
public record Seen(Key key, String value, WriteId version) {
  /** A key of which nobody knows which write was seen. */
  public Seen(Key key) {
    this(key, null, null);
  }

  /** A key that held this. */
  public Seen(Key key, String value) {
    this(key, value, null);
  }
}
