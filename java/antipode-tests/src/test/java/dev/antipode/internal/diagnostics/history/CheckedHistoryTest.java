package dev.antipode.internal.diagnostics.history;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Key;
import dev.antipode.LineageScope;
import dev.antipode.internal.store.Registry;
import dev.antipode.lab.HistoryCheck;
import dev.antipode.lab.Repository;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.observer.Content;
import dev.antipode.observer.ReadReply;
import dev.antipode.propagation.Messages;
import dev.antipode.shim.ReadValue;
import dev.antipode.testing.AntipodeIsolated;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What {@code antipode check --history} decides of what Java records, alone and with Python's (HIST-19, HIST-32). */
@ExtendWith(AntipodeIsolated.class)
class CheckedHistoryTest {
  private static final String RELAY =
      """
      import sys, antipode
      from antipode import recorder
      from antipode.messages import HEADER, message_scope, outgoing_message
      antipode.configure(history=sys.argv[1])
      for text in sys.argv[2:]:
          with message_scope({HEADER: text}):
              print(outgoing_message())
      recorder.end()
      """;

  @TempDir Path temporary;
  private Path history;

  @BeforeEach
  void record() {
    history = temporary.resolve("history");
    Antipode.configure(Antipode.settings().history(history.toString()).timeout(Duration.ofSeconds(30)));
  }

  private HistoryCheck checked() {
    Recorder.forget();
    return HistoryCheck.of(history);
  }

  /**
   * Post-notification, whose notifications go through a service in Python: what is counted here is what the command finds in
   * the files of both, and none with the barrier.
   */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void postNotificationThroughPython(boolean barrier) {
    MemoryStore posts = MemoryStore.named("posts").lag(barrier ? Duration.ofMillis(500) : Duration.ofMinutes(1));
    MemoryClient writer = posts.client("a");
    MemoryClient reader = posts.client("b");
    String[] arguments = new String[6];
    arguments[0] = history.toString();
    for (int number = 1; number < arguments.length; number++) {
      try (LineageScope scope = Antipode.scope()) {
        writer.set("post:" + number, "body " + number);
        arguments[number] = Messages.outgoing(null);
      }
    }
    List<String> relayed = Repository.runPython(RELAY, arguments).lines().toList();
    int inconsistent = 0;
    for (int number = 1; number < arguments.length; number++) {
      try (LineageScope message = Antipode.messageScope(relayed.get(number - 1))) {
        if (barrier) {
          Antipode.barrier();
        }
        inconsistent += reader.get("post:" + number) == null ? 1 : 0;
      }
    }
    assertThat(inconsistent).isEqualTo(barrier ? 0 : arguments.length - 1);
    HistoryCheck check = checked();
    assertThat(check.exit()).as(check.text()).isEqualTo(barrier ? 0 : 1);
    assertThat(check.violations()).as(check.text()).isEqualTo(inconsistent);
  }

  /** HIST-26: a read that was begun before a write is not after it; one that was begun after it is. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whatOverlaps(boolean after) {
    MemoryStore posts = MemoryStore.named("posts").lag(Duration.ofMinutes(1));
    MemoryClient writer = posts.client("a");
    MemoryClient reader = posts.client("b");
    try (LineageScope scope = Antipode.scope()) {
      ReadEvent other = Recorder.current().read(scope, Registry.current().need("posts"), scope.held());
      writer.set("1", "x");
      if (after) {
        reader.get("1");
        other.failed();
      } else {
        other.returned(new ReadReply(null, List.of(new ReadValue(Key.of("1"), Content.NOTHING))), null);
      }
    }
    HistoryCheck check = checked();
    assertThat(check.exit()).as(check.text()).isEqualTo(after ? 1 : 0);
  }

  /** HIST-26: a detached scope depends on the scope that it is a copy of, and on nothing that this does later. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aCopyOfAScope(boolean before) {
    MemoryStore posts = MemoryStore.named("posts").lag(Duration.ofMinutes(1));
    MemoryClient writer = posts.client("a");
    MemoryClient reader = posts.client("b");
    Runnable work;
    try (LineageScope scope = Antipode.scope()) {
      writer.set("1", "x");
      try (LineageScope copy = Antipode.detachedScope()) {
        work = Antipode.carry(() -> {
          reader.get(before ? "1" : "2");
        });
      }
      writer.set("2", "x");
    }
    work.run();
    HistoryCheck check = checked();
    assertThat(check.exit()).as(check.text()).isEqualTo(before ? 1 : 0);
    assertThat(check.violations()).isEqualTo(before ? 1 : 0);
  }

  /** HIST-33, HIST-18: it stands for writes that no line names. */
  @Test
  void aPositionThatComesByHandIsNotKnown() {
    MemoryClient client = MemoryStore.named("posts").client("a");
    try (LineageScope scope = Antipode.scope()) {
      client.set("1", "x");
    }
    String text;
    try (LineageScope scope = Antipode.scope()) {
      client.set("2", "y");
      text = Antipode.serialize();
    }
    try (LineageScope scope = Antipode.scope(Antipode.deserialize(text))) {
      client.get("1");
    }
    assertThat(checked().exit()).isEqualTo(2);
  }

  /** HIST-25: a process that ends says so; one that is killed has no end. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void processesThatEnd(boolean killed) throws Exception {
    HistoryProcess.run(history, killed ? new String[] {"killed"} : new String[0]);
    HistoryCheck check = HistoryCheck.of(history);
    assertThat(check.exit()).as(check.text()).isEqualTo(killed ? 2 : 0);
    if (killed) {
      assertThat(check.text()).contains("no end").contains("posts-service");
    }
  }
}
