package dev.antipode.observer;

/** What a key holds, as far as a recorded history is told; values have no digests here (HIST-37). */
public enum Content {
  /** Nobody knows. */
  UNKNOWN,
  /** Nothing is there. */
  NOTHING,
  /** Something is there. */
  SOMETHING
}
