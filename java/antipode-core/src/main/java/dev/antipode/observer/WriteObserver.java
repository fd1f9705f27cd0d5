package dev.antipode.observer;

import dev.antipode.Key;
import dev.antipode.WriteId;
import java.util.List;

/** Who is told what becomes of one write: at most one of {@code done}, {@code unknown} and {@code notDone} ends it. */
public interface WriteObserver {
  /** Note what it does to which keys, in their order; nothing where it changes none. Null: nobody knows. */
  void changes(List<KeyChange> keys);

  /**
   * Note that it has happened.
   *
   * @param id its identifier; null where there is none
   * @param key of which object, where it is one's
   */
  void done(WriteId id, Key key);

  /** Note that nobody knows whether it happened (HIST-27). */
  void unknown(Key key);

  /** Note that it did not happen. */
  void notDone();

  /** Note that what it changed could not be told. */
  void untold(RuntimeException error);
}
