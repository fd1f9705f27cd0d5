package dev.antipode.internal.diagnostics.history;

import dev.antipode.Antipode;
import dev.antipode.LineageScope;
import dev.antipode.memory.MemoryStore;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A process of its own that records one write, and ends or is killed. */
final class HistoryProcess {
  private HistoryProcess() {}

  public static void main(String[] arguments) {
    try (LineageScope scope = Antipode.scope()) {
      MemoryStore.named("posts").client("a").set("1", "x");
    }
    if (arguments.length > 0) {
      Recorder.flush();
      Runtime.getRuntime().halt(0); // no hook runs, as when it is killed
    }
  }

  /** Runs one to its end. */
  static void run(Path history, String... arguments) throws IOException, InterruptedException {
    String classPath = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
    Path java = Path.of(System.getProperty("java.home"), "bin", "java");
    var command = new ArrayList<>(
        List.of(java.toString(), "-XX:TieredStopAtLevel=1", "-cp", classPath, HistoryProcess.class.getName()));
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command).inheritIO();
    builder.environment().put("ANTIPODE_HISTORY", history.toString());
    builder.environment().put("OTEL_SERVICE_NAME", "posts-service");
    Process process = builder.start();
    if (!process.waitFor(50, TimeUnit.SECONDS)) {
      process.destroyForcibly();
      throw new AssertionError("the process did not end");
    }
  }
}
