package dev.antipode.shim;

import dev.antipode.internal.model.CodedText;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * The {@code dev.antipode} logger of {@code java.util.logging}: each kind of line at most once a minute, with how often
 * it happened meanwhile (OBS-7). No key, mark or whole lineage goes into a line (OBS-5). What the application's handlers throw
 * ends here: it is no outcome of a barrier or of a write that is done (SHIM-2, BAR-61).
 */
public final class Logs {
  private static final long PERIOD_NANOS = TimeUnit.MINUTES.toNanos(1);
  private static final int MOST_KINDS = 1000; // kinds may name call sites
  private static final Map<String, Kind> KINDS = new HashMap<>();

  /** Made when the first line is said, where it may fail: a process without descriptors cannot read its settings. */
  private static final class Lines {
    private static final Logger LOGGER = Logger.getLogger("dev.antipode");
  }

  private static final class Kind {
    private long last;
    private int held;
  }

  private Logs() {}

  /** Logs a warning, with its code (OBS-14), unless one of this kind came within the minute. */
  public static void warn(String code, String kind, String message) {
    say(Level.WARNING, kind, CodedText.of(message, code), null, null);
  }

  /** The same; {@code countAs} names the running count of what the line is about: {@code dropped=41}. */
  public static void warn(String code, String kind, String message, String countAs) {
    say(Level.WARNING, kind, CodedText.of(message, code), countAs, null);
  }

  /** Logs a piece of information at most once a minute a kind. */
  public static void info(String code, String kind, String message) {
    say(Level.INFO, kind, CodedText.of(message, code), null, null);
  }

  /** The same; {@code countAs} names the running count of what the line is about. */
  public static void info(String code, String kind, String message, String countAs) {
    say(Level.INFO, kind, CodedText.of(message, code), countAs, null);
  }

  /** Logs a defect of ours, or of a shim, with its stack, at most once a minute a message. */
  public static void error(String code, String message, Throwable thrown) {
    say(Level.SEVERE, message, CodedText.of(message, code), null, thrown);
  }

  private static void say(Level level, String kind, String message, String countAs, Throwable thrown) {
    int held = admit(kind);
    if (held < 0) {
      return;
    }
    String line = message;
    if (countAs != null) {
      line += " " + countAs + "=" + (held + 1);
    } else if (held > 0) {
      line += " (and " + held + " more like it)";
    }
    try { // A record's text is a pattern only where it has parameters.
      Lines.LOGGER.log(level, line, thrown);
    } catch (Throwable error) { // the application's handler, or a class of the JDK that cannot be loaded now
      return; // there is nowhere to say it
    }
  }

  /** How many lines of this kind were held back since the last one; less than 0 where this one is held too. */
  private static int admit(String kind) {
    long now = System.nanoTime();
    synchronized (KINDS) {
      Kind known = KINDS.get(kind);
      if (known == null) {
        if (KINDS.size() >= MOST_KINDS) {
          KINDS.clear();
        }
        known = new Kind();
        KINDS.put(kind, known);
      } else if (now - known.last < PERIOD_NANOS) {
        known.held++;
        return -1;
      }
      int held = known.held;
      known.held = 0;
      known.last = now;
      return held;
    }
  }

  /** Forgets what was logged (tests). */
  public static void reset() {
    synchronized (KINDS) {
      KINDS.clear();
    }
  }
}
