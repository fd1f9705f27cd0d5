package dev.antipode.observer;

import dev.antipode.Lineage;

/** Who names one message that is about to leave (HIST-30). */
public interface MessageObserver {
  /** Return the name that its lineage takes along. */
  String name();

  /** Note that it leaves with this lineage, which names it. */
  void sent(Lineage lineage);
}
