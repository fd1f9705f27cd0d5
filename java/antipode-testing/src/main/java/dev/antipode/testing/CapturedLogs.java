package dev.antipode.testing;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** The lines of the {@code dev.antipode} logger, until it is closed: for tests. */
public final class CapturedLogs implements AutoCloseable {
  private static final Logger LOGGER = Logger.getLogger("dev.antipode");

  private final List<String> lines = new CopyOnWriteArrayList<>();
  private final Handler handler = new Handler() {
    @Override
    public void publish(LogRecord line) {
      lines.add(line.getMessage());
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
  };

  /** Begins. */
  public CapturedLogs() {
    LOGGER.addHandler(handler);
  }

  /** What was logged so far. */
  public List<String> lines() {
    return List.copyOf(lines);
  }

  /** What was logged so far, as one text. */
  public String text() {
    return String.join("\n", lines);
  }

  @Override
  public void close() {
    LOGGER.removeHandler(handler);
  }
}
