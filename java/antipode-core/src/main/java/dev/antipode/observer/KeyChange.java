package dev.antipode.observer;

import dev.antipode.Key;

/**
 * What a write did to one key.
 *
 * @param key the key
 * @param content what the key holds from now on
 * @param expires whether it may go by itself
 */
public record KeyChange(Key key, Content content, boolean expires) {
  /** A key of which nobody knows what it holds now. */
  public KeyChange(Key key) {
    this(key, Content.UNKNOWN, false);
  }

  /** A key that holds this from now on. */
  public KeyChange(Key key, Content content) {
    this(key, content, false);
  }
}
