package dev.antipode.internal.engine;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Tells a fault of this process from a server's silence (BAR-61). */
final class OwnFault {
  private static final List<String> WORDS =
      List.of("Too many open files", "Cannot allocate memory", "No buffer space available", "unable to create native thread");
  private static final Path NOTHING = Path.of("/dev/null");
  private static final int MOST_CAUSES = 20;

  private OwnFault() {}

  /**
   * Return whether this process lacked a descriptor, a thread or memory, by an error of a client or of Java. Clients put the
   * system's error into one of their own; one that names no cause is checked by taking a descriptor here. A server that lacks
   * one itself may use the same words: it counts as unproven then, and is not left out.
   */
  static boolean is(Throwable error) {
    Throwable found = error;
    for (int depth = 0; depth < MOST_CAUSES && found != null; depth++, found = found.getCause()) {
      String text = String.valueOf(found.getMessage());
      if (found instanceof VirtualMachineError || WORDS.stream().anyMatch(text::contains)) {
        return true;
      }
    }
    return lacksDescriptors();
  }

  private static boolean lacksDescriptors() {
    if (!Files.exists(NOTHING)) { // not every system has it
      return false;
    }
    try {
      Files.newInputStream(NOTHING).close();
      return false;
    } catch (IOException error) {
      return true;
    }
  }
}
