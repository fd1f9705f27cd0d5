package dev.antipode.observer;

import dev.antipode.WriteId;

/** Who is told what becomes of one read: the first word of its end counts. Nothing here throws. */
public interface ReadObserver {
  /**
   * Note that its reply has come.
   *
   * @param covers the position that goes into the lineage of whoever depends on it (SHIM-13); null for none
   */
  void returned(ReadReply reply, WriteId covers);

  /** Note that there is no reply. */
  void failed();
}
