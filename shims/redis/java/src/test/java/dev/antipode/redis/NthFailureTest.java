package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.lab.Repository;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The n-th call of a function of the system fails, on real servers: no false pass, no hang, whole behind it (BAR-61). Threads
 * are created where a process waits first, so each of those is a process of its own.
 */
class NthFailureTest {
  private static final int MOST_THREADS = 20;
  private static RedisServers servers;

  @TempDir
  private Path folder;

  @BeforeAll
  static void start() {
    servers = new RedisServers("0ms");
  }

  @AfterAll
  static void end() {
    servers.close();
  }

  @ParameterizedTest
  @CsvSource({
    "socket, once, blocking", "socket, burst, future", "socket, on, blocking",
    "connect, once, future", "connect, burst, blocking", "connect, on, future",
    "poll, once, blocking", "poll, burst, future", "poll, on, blocking"
  })
  void aCallFails_BAR_61(String function, String kind, String form) throws Exception {
    String[] numbers = kind.equals("on") ? new String[] {"1", "2", "3"} : "1 2 3 4 5 8 12 20".split(" ");
    assertThat(play(function, kind, form, "warm", numbers)).isPositive();
  }

  @ParameterizedTest
  @CsvSource({"on, blocking", "on, future"}) // the JVM itself tries three times
  @Timeout(300) // a process a number
  void aThreadCannotBeStarted_BAR_61(String kind, String form) throws Exception {
    int number = 0;
    int failed;
    do {
      failed = play("thread", kind, form, "cold", String.valueOf(++number));
    } while (failed > 0 && number < MOST_THREADS);
    assertThat(number).isBetween(2, MOST_THREADS);
  }

  /** Plays rounds in a process of their own; returns in how many of them a call failed. */
  private int play(String function, String kind, String form, String start, String... numbers) throws Exception {
    List<String> command = new ArrayList<>(List.of(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        "-cp",
        System.getProperty("java.class.path"),
        LackingProcess.class.getName(),
        servers.url("a"),
        servers.url("b1"),
        function,
        kind,
        form,
        start));
    command.addAll(List.of(numbers));
    File output = folder.resolve("output").toFile();
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output);
    builder.environment().put("LD_PRELOAD", library());
    Process process = builder.start();
    boolean hasEnded = process.waitFor(100, TimeUnit.SECONDS);
    process.destroyForcibly();
    String said = Files.readString(output.toPath());
    assertThat(hasEnded).as("it ends; it said: " + said).isTrue();
    assertThat(process.exitValue()).as(function + " " + kind + " " + form + " " + command + said).isZero();
    String last = said.lines().reduce((before, line) -> line).orElseThrow();
    assertThat(last).startsWith("whole ");
    return Integer.parseInt(last.substring("whole ".length()));
  }

  private static String library() throws IOException {
    return Repository.runPython("from antipode_lab.call_faults import library; print(library())").strip();
  }
}
