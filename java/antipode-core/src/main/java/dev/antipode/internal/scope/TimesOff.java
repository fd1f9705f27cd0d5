package dev.antipode.internal.scope;

import dev.antipode.Gap;
import dev.antipode.internal.base.ProcessSettings;
import java.util.List;

/**
 * Whether the mode has left {@code off} while a scope was open: what it wrote and heard then is not recorded, so it is
 * incomplete anywhere (SCOPE-26). A request pays one look for what an operator does once.
 */
public final class TimesOff {
  private static final List<Gap> GAPS = List.of(
      new Gap("mode", "", "the mode was off while it was open: what it wrote and heard then is not recorded"));

  private volatile int seen = ProcessSettings.timesOffEnded();
  private volatile boolean isOver;
  private volatile boolean wasAny;

  /** Return whether the mode was off meanwhile. */
  public boolean isAny() {
    return isOver ? wasAny : seen != ProcessSettings.timesOffEnded();
  }

  /** Return what that makes of the lineage. */
  public List<Gap> gaps() {
    return isAny() ? GAPS : List.of();
  }

  /** The application vouches for what was until now. */
  public void clear() {
    wasAny = false;
    seen = ProcessSettings.timesOffEnded();
  }

  /** Ends with the scope, if that is over now: what comes later is not its own. Returns what is given. */
  public boolean end(boolean isScopeOver) {
    if (isScopeOver && !isOver) {
      wasAny = isAny();
      isOver = true;
    }
    return isScopeOver;
  }
}
