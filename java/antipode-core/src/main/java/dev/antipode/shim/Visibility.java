package dev.antipode.shim;

import dev.antipode.UnprovenKind;
import dev.antipode.Verdict;

/**
 * A shim's answer about one write at one server: visible, not yet or unproven, and why (SHIM-15).
 *
 * @param verdict {@link Verdict#VISIBLE}, {@link Verdict#NOT_YET} or {@link Verdict#UNPROVEN}
 * @param reason where the server is, or what is missing; may be empty where it is visible
 * @param unknownEpoch with not yet: the server does not know the write's epoch, which may be newer than it (EPOCH-12)
 * @param unanswered with not yet: the question was put off, and nothing was said of the write
 * @param kind with unproven: what kept it from being proved (BAR-59); else null
 */
public record Visibility(
    Verdict verdict, String reason, boolean unknownEpoch, boolean unanswered, UnprovenKind kind) {

  /** The write is visible at this server, or superseded there. */
  public static final Visibility VISIBLE = new Visibility(Verdict.VISIBLE, "", false, false, null);

  /** Not visible there now; it may become so. */
  public static final Visibility NOT_YET = new Visibility(Verdict.NOT_YET, "", false, false, null);

  /** Not visible at this server now, and where it is; it may become so. */
  public static Visibility notYet(String reason) {
    return new Visibility(Verdict.NOT_YET, reason, false, false, null);
  }

  /** Not visible, and the server does not know the write's epoch. */
  public static Visibility unknownEpoch(String reason) {
    return new Visibility(Verdict.NOT_YET, reason, true, false, null);
  }

  /**
   * Not visible as far as is known: nothing was said of the write now (it is not its turn, the server is loading). Dry-run
   * finds nothing there (REC-13).
   */
  public static Visibility unanswered(String reason) {
    return new Visibility(Verdict.NOT_YET, reason, false, true, null);
  }

  /** Waiting proves nothing: the reason says what is missing. */
  public static Visibility unproven(String reason) {
    return unproven(reason, UnprovenKind.OTHER);
  }

  /** The same; the kind says which advice fits. */
  public static Visibility unproven(String reason, UnprovenKind kind) {
    return new Visibility(Verdict.UNPROVEN, reason, false, false, kind);
  }

  /** Whether it is visible. */
  public boolean isVisible() {
    return verdict == Verdict.VISIBLE;
  }

  /** Whether it cannot be proved. */
  public boolean isUnproven() {
    return verdict == Verdict.UNPROVEN;
  }
}
