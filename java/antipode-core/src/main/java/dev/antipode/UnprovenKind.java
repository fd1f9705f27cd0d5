package dev.antipode;

import java.util.Locale;

/** What kept a store from being proved (BAR-59): where writes or servers differ, the first in this order counts. */
public enum UnprovenKind {
  /** The write belongs to a history that the server does not know, or that ended before it: it may be lost. */
  HISTORY(
      "AP202",
      "The write may be lost. After a restore or failover, check it and run: "
          + "antipode epoch settle %s EPOCH --position N --at URL"),
  /** A right is missing. */
  RIGHT("AP203", "Give the login of %s the right, as an administrator: antipode init prints how."),
  /** Connecting or logging in failed. */
  CONNECTION("AP204", "See that a server of %s runs and lets this process in: antipode doctor URL."),
  /** No server is known yet (BAR-52). */
  NOT_OPENED("AP104", "No server of %s is known yet: wrap its client, or name its servers with replicas(…)."),
  /** The lineage's name of the store is a registered one's but for case, {@code -} and {@code _} (BAR-6). */
  MISSPELT("AP107", "A store has one name in every service."),
  /** What lists the servers lists none, or fails (BAR-53). */
  DISCOVERY("AP207", "What lists the servers of %s (replicas(…), a Sentinel, a name service) must name one."),
  /** A setting or a topology in which nothing can be proved. */
  UNFIT("AP208", "Change that setting or topology of %s; antipode doctor URL says how."),
  /** This process itself is in trouble. */
  OWN_FAULT("AP209", "This process is in trouble: look at its descriptors, threads and memory, and at its log."),
  /** Anything else. */
  OTHER("AP299", "antipode doctor URL says what is unproven at a server, and what cures it.");

  private final String code;
  private final String cure;

  UnprovenKind(String code, String cure) {
    this.code = code;
    this.cure = cure;
  }

  /** The same word in all languages: {@code not_opened}. */
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** Return the code of its message (OBS-15). */
  public String code() {
    return code;
  }

  /** Return what cures it, in a sentence. */
  public String cure(String store) {
    return cure.formatted(store);
  }

  @Override
  public String toString() {
    return word();
  }
}
