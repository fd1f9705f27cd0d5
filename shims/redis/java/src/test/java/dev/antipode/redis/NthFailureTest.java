package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.lab.CallFaults;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The n-th call of a function of the system fails, on real servers: no false pass, no hang, whole behind it (BAR-61). Threads
 * are created where a process waits first, so each of those is a process of its own. Every n up to 200:
 * {@code -Dantipode.nth=all}.
 */
class NthFailureTest {
  private static final int MOST_THREADS = 20;
  private static final int MOST_CALLS = 200;
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
    String[] numbers = kind.equals("on") ? new String[] {"1", "2"} : "1 2 4 8".split(" ");
    assertThat(play(100, function, kind, form, "warm", numbers)).isPositive();
  }

  @ParameterizedTest
  @EnabledIfSystemProperty(named = "antipode.nth", matches = "all")
  @Timeout(3200)
  @CsvSource({
    "socket, once", "socket, burst", "socket, on", "connect, once", "connect, burst", "connect, on",
    "poll, once", "poll, burst", "poll, on"
  })
  void everyCallFails_BAR_61(String function, String kind) throws Exception {
    int[] numbers = IntStream.rangeClosed(1, MOST_CALLS)
        .filter(number -> !kind.equals("on") || number < 12 || number % 20 == 0) // each takes its time
        .toArray();
    for (String form : new String[] {"blocking", "future"}) {
      String[] words = IntStream.of(numbers).mapToObj(String::valueOf).toArray(String[]::new);
      assertThat(play(1500, function, kind, form, "warm", words)).isPositive();
    }
  }

  @ParameterizedTest
  @CsvSource({"on, blocking", "on, future"}) // the JVM itself tries three times
  @Timeout(300) // a process a number
  void aThreadCannotBeStarted_BAR_61(String kind, String form) throws Exception {
    int number = 0;
    int failed;
    do {
      failed = play(100, "thread", kind, form, "cold", String.valueOf(++number));
    } while (failed > 0 && number < MOST_THREADS);
    assertThat(number).isBetween(2, MOST_THREADS);
  }

  /** Plays rounds in a process of their own, so long at most; returns in how many of them a call failed. */
  private int play(int seconds, String function, String kind, String form, String start, String... numbers) throws Exception {
    List<String> words =
        new ArrayList<>(List.of(servers.url("a"), servers.url("b1"), function, kind, form, start));
    words.addAll(List.of(numbers));
    CallFaults.EndedProcess ended = CallFaults.run(folder, seconds, LackingProcess.class, words.toArray(String[]::new));
    assertThat(ended.exit()).as(words + " " + ended.said()).isEqualTo(0);
    String last = ended.said().lines().reduce((before, line) -> line).orElseThrow();
    assertThat(last).startsWith("whole ");
    return Integer.parseInt(last.substring("whole ".length()));
  }
}
