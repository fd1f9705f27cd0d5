package dev.antipode.shim;

import java.lang.StackWalker.StackFrame;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** Where in the application something happened: {@code followers/App.java:31}, for findings, logs and metrics. */
public final class CallSite {
  /** What is said where no frame is the application's own. */
  public static final String UNKNOWN = "other";

  private static final StackWalker WALKER = StackWalker.getInstance();
  private static final List<String> INNER =
      new CopyOnWriteArrayList<>(List.of("dev.antipode.", "java.", "javax.", "jdk.", "sun."));

  private CallSite() {}

  /** Takes packages out of call sites: a shim names itself and the client that it wraps ({@code redis.clients.}). */
  public static void skipPackages(String... prefixes) {
    for (String prefix : prefixes) {
      if (!INNER.contains(prefix)) {
        INNER.add(prefix);
      }
    }
  }

  /** The last part of the package, the file and the line of the innermost frame that is the application's own. */
  public static String current() {
    return WALKER.walk(
        frames -> frames.filter(CallSite::isApplication).findFirst().map(CallSite::spelled).orElse(UNKNOWN));
  }

  private static boolean isApplication(StackFrame frame) {
    String name = frame.getClassName();
    for (String prefix : INNER) {
      if (name.startsWith(prefix)) {
        return false;
      }
    }
    return frame.getLineNumber() > 0;
  }

  private static String spelled(StackFrame frame) {
    String name = frame.getClassName();
    int end = name.lastIndexOf('.');
    String file = frame.getFileName() == null ? name.substring(end + 1) : frame.getFileName();
    String folder = end < 0 ? "" : name.substring(name.lastIndexOf('.', end - 1) + 1, end) + "/";
    return folder + file + ":" + frame.getLineNumber();
  }
}
