package dev.antipode.internal.diagnostics.history;

import dev.antipode.Key;
import dev.antipode.WriteId;
import dev.antipode.observer.Content;

/**
 * What a read found under one key.
 *
 * @param key the key
 * @param content what it held
 * @param version the write that the value itself is, exactly, where the value says so; else null
 */
public record Seen(Key key, Content content, WriteId version) {
  /** A key of which nobody knows which write was seen. */
  public Seen(Key key) {
    this(key, Content.UNKNOWN, null);
  }

  /** A key that held this. */
  public Seen(Key key, Content content) {
    this(key, content, null);
  }
}
