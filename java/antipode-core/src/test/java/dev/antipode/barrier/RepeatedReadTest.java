package dev.antipode.barrier;

import static dev.antipode.records.Counts.total;
import static dev.antipode.records.Lines.until;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.barrier.FakeShim.Answer;
import dev.antipode.barrier.FakeShim.Fake;
import dev.antipode.records.Lines;
import dev.antipode.records.Records;
import dev.antipode.records.Repeats;
import dev.antipode.shim.FollowedRead;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Reads that dry-run sends once more: when, and what they confirm (REC-14, REC-15, REC-22). */
@ExtendWith(AntipodeIsolated.class)
class RepeatedReadTest {
  private static final Lineage ONE = Lineage.of(WriteId.position("posts", "e", 1));

  @TempDir
  Path folder;

  private final AtomicBoolean isThere = new AtomicBoolean();
  private final CountDownLatch held = new CountDownLatch(1);
  private Lines lines;
  private RegisteredStore store;

  @BeforeEach
  void records() {
    lines = new Lines(folder.resolve("records"));
    Answer answer = (ids, server) ->
        FakeShim.always(isThere.get() ? Visibility.VISIBLE : Visibility.NOT_YET).to(ids, server);
    store = FakeShim.store("posts", new Fake("p", answer));
  }

  @AfterEach
  void letGo() {
    held.countDown();
  }

  private Server server() {
    return store.servers(false).get(0);
  }

  private List<String> kinds() {
    return lines.of("behind", "stale").stream().map(line -> line.get("kind").asText()).toList();
  }

  /** What reads by this, and does not end before the test does. */
  private Object held() throws InterruptedException {
    held.await();
    return "new";
  }

  /** REC-15: neither the one that is under way is lost, nor one that waits for it. */
  @Test
  void theEndOfTheProcessLosesNoFinding() {
    AtomicBoolean isUnderWay = new AtomicBoolean();
    try (LineageScope scope = Antipode.scope(ONE)) {
      FollowedRead.of(store).over(server(), () -> "old", () -> {
        isUnderWay.set(true);
        return held();
      });
      FollowedRead.of(store).over(server(), () -> "old", () -> "new");
      assertThat(scope.isClosed()).isFalse();
    }
    until(Following::allLookedAt);
    isThere.set(true);
    until(isUnderWay::get);
    Lines.settled();
    long begun = System.nanoTime();
    Records.end();
    assertThat(System.nanoTime() - begun).isLessThan(2_000_000_000L);
    assertThat(kinds()).containsExactly("behind", "behind");
  }

  /** REC-15: nor is a record that the engine's thread is making. */
  @Test
  void theEndOfTheProcessWaitsForARecordThatIsBeingMade() throws InterruptedException {
    CountDownLatch began = new CountDownLatch(1);
    AtomicBoolean isTold = new AtomicBoolean();
    Following.follow(server(), List.copyOf(ONE.ofStore("posts")), () -> { }, writes -> {
      began.countDown();
      try {
        held.await();
      } catch (InterruptedException error) {
        throw new AssertionError(error);
      }
      isTold.set(true);
    });
    until(Following::allLookedAt); // what the first look finds may be told on this thread
    isThere.set(true);
    assertThat(began.await(60, TimeUnit.SECONDS)).isTrue();
    Thread waiting = Thread.currentThread();
    CompletableFuture.runAsync(() -> {
      until(() -> waiting.getState() == Thread.State.TIMED_WAITING);
      held.countDown();
    });
    Following.giveUpAll();
    assertThat(isTold).isTrue();
  }

  // What nobody has: the shim's own reads are compared (REC-22)

  /** Follows a read whose results, when the shim sends it, are these in turn; the writes come after the first one. */
  private JsonNode followed(Object... results) {
    AtomicInteger sent = new AtomicInteger();
    follow(() -> {
      int number = sent.getAndIncrement();
      if (results[number] instanceof Exception error) {
        throw error;
      }
      return results[number];
    });
    until(() -> sent.get() == 1 && Repeats.nothingWaits());
    isThere.set(true);
    return lines.finding();
  }

  private void follow(Callable<?> again) {
    try (LineageScope scope = Antipode.scope(ONE)) {
      FollowedRead.of(store).over(server(), again);
      assertThat(scope.isClosed()).isFalse();
    }
  }

  /** REC-22. */
  @Test
  void whatChangedOnceAndStaysSoIsStale() {
    JsonNode record = followed("old", "new", "new");
    assertThat(record.get("kind").asText()).isEqualTo("stale");
    assertThat(record.get("confirmed").asText()).isEqualTo("repeat");
    assertThat(record.get("wanted").get("counter").asText()).isEqualTo("1");
    assertThat(total("stale")).isOne();
    assertThat(total("behind")).isZero();
  }

  static Stream<Arguments> notConfirmed() {
    return Stream.of(
        Arguments.of("the same", new Object[] {"old", "old", "old"}),
        Arguments.of("another each time", new Object[] {"1", "2", "3"}),
        Arguments.of("as it was", new Object[] {"old", "new", "old"}),
        Arguments.of("changed between the last two", new Object[] {"old", "old", "new"}),
        Arguments.of("an error at first", new Object[] {new IOException("refused"), "new", "new"}),
        Arguments.of("an error behind", new Object[] {"old", new IOException("refused"), "new"}),
        Arguments.of("an error at last", new Object[] {"old", "new", new IOException("refused")}),
        Arguments.of("not comparable", new Object[] {new Object(), "new", "new"}));
  }

  /** REC-22. */
  @ParameterizedTest(name = "{0}")
  @MethodSource("notConfirmed")
  void allElseIsBehind(String way, Object[] results) {
    assertThat(followed(results).get("kind").asText()).as(way).isEqualTo("behind");
    assertThat(total("behind")).isOne();
    assertThat(total("stale")).isZero();
  }

  /** REC-22: one that is sent when all is there says nothing of what was there before. */
  @Test
  void theFirstOneComesTooLate() {
    CountDownLatch before = new CountDownLatch(1);
    Repeats.later(() -> before.await(20, TimeUnit.SECONDS), found -> { });
    AtomicInteger sent = new AtomicInteger();
    follow(sent::incrementAndGet);
    until(Following::allLookedAt);
    isThere.set(true);
    until(() -> Following.count() == 0);
    before.countDown();
    assertThat(lines.finding().get("kind").asText()).isEqualTo("behind");
    assertThat(sent).hasValue(0);
  }

  /** REC-14: what has begun is ended, however much else would begin. */
  @Test
  void aBusyThreadEndsWhatItHasBegun() {
    int begun = 10;
    AtomicInteger sent = new AtomicInteger();
    for (int number = 0; number < begun; number++) {
      follow(() -> sent.incrementAndGet() <= begun ? "old" : "new");
    }
    until(() -> sent.get() == begun && Repeats.nothingWaits());
    CountDownLatch before = new CountDownLatch(1);
    AtomicBoolean isBusy = new AtomicBoolean();
    Repeats.later(() -> {
      isBusy.set(true);
      return before.await(20, TimeUnit.SECONDS);
    }, found -> { });
    until(isBusy::get);
    for (int number = 0; number < 200; number++) {
      follow(() -> "other");
    }
    until(Following::allLookedAt);
    isThere.set(true);
    until(() -> Following.count() == 0);
    before.countDown();
    until(Repeats::nothingWaits);
    assertThat(kinds()).hasSize(begun + 200);
    assertThat(total("stale")).isEqualTo(begun);
  }

  /** REC-10, REC-14. */
  @Test
  void withoutRepeatReadsNothingIsSent() {
    Antipode.configure(Antipode.settings().repeatReads(false));
    AtomicInteger sent = new AtomicInteger();
    follow(sent::incrementAndGet);
    until(Following::allLookedAt);
    isThere.set(true);
    assertThat(lines.finding().get("kind").asText()).isEqualTo("behind");
    assertThat(sent).hasValue(0);
  }

  /** REC-13, REC-22: nothing is sent where the server was not behind. */
  @Test
  void whatIsThereAtOnceIsNotSentAgain() {
    isThere.set(true);
    AtomicInteger sent = new AtomicInteger();
    follow(sent::incrementAndGet);
    until(() -> Following.count() == 0 && Repeats.nothingWaits());
    assertThat(total("followed_reads")).isOne();
    assertThat(kinds()).isEmpty();
    assertThat(sent).hasValue(0);
  }

  /** REC-15. */
  @Test
  void whatIsGivenUpIsBehind() {
    AtomicInteger sent = new AtomicInteger();
    follow(sent::incrementAndGet);
    until(() -> sent.get() == 1);
    Following.giveUpAll();
    assertThat(lines.finding().get("visible_after").isNull()).isTrue();
    assertThat(kinds()).containsExactly("behind");
    assertThat(sent).hasValue(1);
  }

  /** REC-15: the end of the process while one of them is under way. */
  @Test
  void theEndOfTheProcessBetweenThem() {
    AtomicInteger sent = new AtomicInteger();
    follow(() -> sent.getAndIncrement() == 0 ? "old" : held());
    until(() -> sent.get() == 1);
    isThere.set(true);
    until(() -> sent.get() == 2);
    Records.end();
    assertThat(kinds()).containsExactly("behind");
  }

  /** REC-13: the engine's thread sends none of them, and waits for none. */
  @Test
  void aReadThatHangsHoldsNoLookUp() {
    AtomicReference<String> thread = new AtomicReference<>();
    follow(() -> {
      thread.set(Thread.currentThread().getName());
      return held();
    });
    until(() -> thread.get() != null);
    assertThat(thread).hasValue("antipode-repeats");
    isThere.set(true);
    assertThat(ServerWait.at(server(), ONE, Duration.ofSeconds(20))).isEqualTo(Verdict.VISIBLE);
    until(() -> Following.count() == 0);
    held.countDown();
    assertThat(lines.finding().get("kind").asText()).isEqualTo("behind"); // it came too late to say more
  }
}
