package dev.antipode.internal.engine;

import static dev.antipode.internal.diagnostics.dryrun.Lines.until;
import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.WriteId;
import dev.antipode.internal.diagnostics.dryrun.FollowedRead;
import dev.antipode.internal.diagnostics.dryrun.Lines;
import dev.antipode.internal.diagnostics.dryrun.Records;
import dev.antipode.internal.engine.FakeShim.Answer;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.observer.ReadReply;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Reads that dry-run sends once more: when, and what they confirm (REC-14, REC-15). */
@ExtendWith(AntipodeIsolated.class)
class RepeatedReadTest {
  private static final Lineage ONE = Lineage.of(WriteId.position("posts", "e", 1));

  @TempDir
  Path folder;

  private final AtomicBoolean isThere = new AtomicBoolean();
  private final CountDownLatch held = new CountDownLatch(1);
  private Lines lines;
  private RegionStore store;

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
      over(FollowedRead.of(store, null), server(), () -> "old", () -> {
        isUnderWay.set(true);
        return held();
      });
      over(FollowedRead.of(store, null), server(), () -> "old", () -> "new");
      assertThat(scope.isClosed()).isFalse();
    }
    until(FollowRegistry::allLookedAt);
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
    FollowRegistry.follow(server(), List.copyOf(ONE.ofStore("posts")), writes -> {
      began.countDown();
      try {
        held.await();
      } catch (InterruptedException error) {
        throw new AssertionError(error);
      }
      isTold.set(true);
    });
    until(FollowRegistry::allLookedAt); // what the first look finds may be told on this thread
    isThere.set(true);
    assertThat(began.await(60, TimeUnit.SECONDS)).isTrue();
    Thread waiting = Thread.currentThread();
    CompletableFuture.runAsync(() -> {
      until(() -> waiting.getState() == Thread.State.TIMED_WAITING);
      held.countDown();
    });
    FollowRegistry.giveUpAll();
    assertThat(isTold).isTrue();
  }

  private static void over(FollowedRead read, Server server, Supplier<?> shown, Callable<?> again) {
    read.returned(new ReadReply(server, List.of(), shown, again), null);
  }
}
