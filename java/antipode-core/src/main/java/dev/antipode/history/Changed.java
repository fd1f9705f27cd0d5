package dev.antipode.history;

import dev.antipode.Key;

/**
 * What a write did to one key.
 *
 * @param key the key
 * @param value the digest of the value that it has from now on, {@link ValueDigest#GONE}, {@link ValueDigest#THERE}, or
 *     null where nobody knows
 * @param expires whether it may go by itself
 */
public record Changed(Key key, String value, boolean expires) {
  /** A key of which nobody knows what it holds now. */
  public Changed(Key key) {
    this(key, null, false);
  }

  /** A key that holds this from now on. */
  public Changed(Key key, String value) {
    this(key, value, false);
  }
}
