package dev.antipode.lab;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The lab's library that fails the n-th call of a function in a process that preloads it (BAR-61; {@code call_faults.c}). */
public final class CallFaults {
  private CallFaults() {}

  /** What is played in a process; its thread's calls are counted. */
  @FunctionalInterface
  public interface Play {
    /** Plays it. */
    void run() throws Exception;
  }

  /**
   * What a process that preloads the library printed.
   *
   * @param exit its exit code; null where it did not end in time
   * @param said all of it
   */
  public record EndedProcess(Integer exit, String said) {}

  /** Runs a class's {@code main} in a process of its own, that long at most; {@code folder} takes what it prints. */
  public static EndedProcess run(Path folder, long seconds, Class<?> program, String... words)
      throws IOException, InterruptedException {
    List<String> command = new ArrayList<>(List.of(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        "-cp", System.getProperty("java.class.path"), program.getName()));
    command.addAll(List.of(words));
    File output = folder.resolve("output").toFile();
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output);
    builder.environment().put(
        "LD_PRELOAD", Repository.runPython("from antipode_lab.call_faults import library; print(library())").strip());
    Process process = builder.start();
    boolean hasEnded = process.waitFor(seconds, TimeUnit.SECONDS);
    process.destroyForcibly().waitFor();
    return new EndedProcess(hasEnded ? process.exitValue() : null, Files.readString(output.toPath()));
  }

  /** Plays it in a thread whose calls are counted, and ends the process: with 1 where it throws. */
  public static void play(Play play) throws InterruptedException {
    Throwable[] failure = new Throwable[1];
    Thread application = new Thread(
        () -> {
          try {
            say("spare");
            play.run();
          } catch (Throwable error) {
            failure[0] = error;
          }
        },
        "antipode-app"); // the library counts what threads of such names call
    application.start();
    application.join();
    if (failure[0] != null) {
      failure[0].printStackTrace();
      System.exit(1);
    }
    System.exit(0);
  }

  /** Tells the library something, in a process that preloads it; returns how many calls have failed. */
  public static long say(String words) throws IOException {
    try (FileInputStream file = new FileInputStream("/antipode-faults:" + words)) {
      return Long.parseLong(new String(file.readNBytes(80), StandardCharsets.US_ASCII).split(" ")[1]);
    }
  }
}
