package dev.antipode.shim;

import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.WriteId;
import dev.antipode.observer.Content;

/**
 * What a read found under one key.
 *
 * @param key the key; empty where the read names none
 * @param content what it held
 * @param version the write that the value itself is, exactly, where the value says so; else null
 * @param covers a position that covers the value, where the store has positions and somebody collects; else null
 * @param lineage what rested beside the value; null where that is not known
 * @param isKnown whether what it depends on is known; where it is not, whoever depends on it is incomplete in the store
 */
public record ReadValue(Key key, Content content, WriteId version, WriteId covers, Lineage lineage, boolean isKnown) {
  /** A value of which nothing is told but its key and what that held. */
  public ReadValue(Key key, Content content) {
    this(key, content, null, null, null, true);
  }

  /** Return the same value with what it depends on. */
  public ReadValue depending(WriteId position, Lineage beside, boolean areKnown) {
    return new ReadValue(key, content, version, position, beside, areKnown);
  }
}
