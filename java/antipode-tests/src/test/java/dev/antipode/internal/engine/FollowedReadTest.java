package dev.antipode.internal.engine;

import static dev.antipode.internal.diagnostics.dryrun.Counts.total;
import static dev.antipode.internal.diagnostics.dryrun.Lines.until;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Reading;
import dev.antipode.StoreOptions;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.diagnostics.dryrun.FollowedRead;
import dev.antipode.internal.diagnostics.dryrun.Lines;
import dev.antipode.internal.engine.FakeShim.Answer;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.internal.store.Registry;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.observer.ReadReply;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import shop.Followers;

/** Reads in dry-run: followed in the background, behind or stale, confirmed or not, and counted (spec REC). */
@ExtendWith(AntipodeIsolated.class)
class FollowedReadTest {
  private static final Lineage ONE = Lineage.of(WriteId.position("posts", "e", 1));
  private static final String HERE = "shop/Followers.java:";

  @TempDir
  Path folder;

  private Lines lines;

  @BeforeEach
  void records() {
    lines = new Lines(folder.resolve("records"));
  }

  private static MemoryStore posts(Versions versions, long lagMillis) {
    return MemoryStore.named("posts").versions(versions).lag(Duration.ofMillis(lagMillis));
  }

  /** A server that has all that is asked for so long after the first question. */
  private static Answer later(long millis) {
    AtomicLong first = new AtomicLong();
    return (ids, server) -> {
      first.compareAndSet(0, System.nanoTime());
      boolean isThere = System.nanoTime() - first.get() > millis * 1_000_000;
      return ids.stream().map(id -> isThere ? Visibility.VISIBLE : Visibility.NOT_YET).toList();
    };
  }

  private static Server server(RegisteredStore store) {
    return store.servers(false).get(0);
  }

  private static byte[] octets(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** REC-6, REC-12, REC-14: the same read returned something else once the write was there. */
  @ParameterizedTest
  @EnumSource(Versions.class)
  void aReadOfWhatHasNotComeIsStale(Versions versions) {
    MemoryStore store = posts(versions, 1500);
    MemoryClient writer = store.client("a");
    MemoryClient reader = store.client("b");
    JsonNode record;
    try (LineageScope scope = Antipode.messageScope("")) {
      scope.queue("notifications");
      writer.set("private-key", "private-value");
      assertThat(Followers.read(reader, "private-key")).isNull();
      record = lines.finding();
    }
    assertThat(record.get("kind").asText()).isEqualTo("stale");
    assertThat(record.get("confirmed").asText()).isEqualTo("repeat");
    assertThat(record.get("site").asText()).startsWith(HERE);
    assertThat(record.get("origin").get("scope").asText()).isEqualTo("message");
    assertThat(record.get("origin").get("store").asText()).isEqualTo("notifications");
    assertThat(record.get("store").asText()).isEqualTo("posts");
    assertThat(record.get("store_kind").asText()).isEqualTo("memory");
    assertThat(record.get("server").asText()).isEqualTo("memory://posts/b");
    assertThat(record.get("visible_after").asDouble()).isBetween(0.01, 20.0);
    if (versions == Versions.POSITION) {
      assertThat(record.get("wanted").get("epoch")).isEqualTo(record.get("seen").get("epoch"));
      assertThat(record.get("wanted").get("counter").asLong()).isEqualTo(record.get("seen").get("counter").asLong() + 1);
    }
    assertThat(record.has("wanted")).isEqualTo(versions != Versions.OPAQUE);
  }

  /** REC-14: the value carries its version, exactly; nothing is repeated, and the value may be the same. */
  @Test
  void anObjectIsStaleByItsOwnVersion() {
    Antipode.configure(Antipode.settings().repeatReads(false));
    MemoryStore store = posts(Versions.OBJECT, 1500);
    MemoryClient writer = store.client("a");
    MemoryClient reader = store.client("b");
    writer.set("k", "v");
    until(() -> reader.get("k") != null);
    try (LineageScope scope = Antipode.scope()) {
      writer.set("k", "v");
      assertThat(reader.get("k")).isEqualTo("v");
      assertThat(scope.isClosed()).isFalse();
    }
    JsonNode record = lines.finding();
    assertThat(record.get("kind").asText()).isEqualTo("stale");
    assertThat(record.get("confirmed").asText()).isEqualTo("version");
    assertThat(record.get("seen").get("counter").asLong()).isLessThan(record.get("wanted").get("counter").asLong());
  }

  /** REC-6. */
  @Test
  void whatReturnsTheSameLaterIsBehindAndNotStale() {
    MemoryStore store = posts(Versions.POSITION, 1500);
    MemoryClient writer = store.client("a");
    MemoryClient reader = store.client("b");
    try (LineageScope scope = Antipode.scope()) {
      writer.set("k", "v");
      assertThat(reader.get("another")).isNull();
      assertThat(scope.isClosed()).isFalse();
    }
    assertThat(lines.finding().get("kind").asText()).isEqualTo("behind");
    assertThat(total("behind")).isOne();
    assertThat(total("stale")).isZero();
  }

  /** REC-14. */
  @ParameterizedTest
  @ValueSource(strings = {"switched off", "cannot be compared", "the repeat fails"})
  void withoutARepeatNothingIsConfirmed(String way) {
    Antipode.configure(Antipode.settings().repeatReads(!way.equals("switched off")));
    RegisteredStore store = FakeShim.store("posts", new Fake("p", later(1000)));
    AtomicBoolean repeated = new AtomicBoolean();
    try (LineageScope scope = Antipode.scope(ONE)) {
      FollowedRead followed = FollowedRead.of(store, null);
      Object value = way.equals("cannot be compared") ? new Object() : octets("old");
      over(followed, server(store), () -> value, () -> {
        repeated.set(true);
        throw new IOException("gone");
      });
      assertThat(scope.isClosed()).isFalse();
    }
    assertThat(lines.finding().get("kind").asText()).isEqualTo("behind");
    assertThat(repeated.get()).isEqualTo(way.equals("the repeat fails"));
  }

  /** REC-14: one that is still missing would make the comparison say nothing. */
  @Test
  void noRepeatBeforeAllIsThere() {
    Fake fake = new Fake("p", (ids, server) -> ids.stream()
        .map(id -> id.version().equals(new Ordered("e", 1)) ? Visibility.VISIBLE : Visibility.NOT_YET)
        .toList());
    RegisteredStore store = FakeShim.store("posts", fake);
    AtomicInteger repeats = new AtomicInteger();
    try (LineageScope scope = Antipode.scope(ONE.including(WriteId.position("posts", "f", 2)))) {
      over(FollowedRead.of(store, null), server(store), () -> octets("old"), repeats::incrementAndGet);
      until(FollowRegistry::allLookedAt);
      assertThat(scope.isClosed()).isFalse();
    }
    FollowRegistry.giveUpAll();
    JsonNode record = lines.finding();
    assertThat(record.get("kind").asText()).isEqualTo("behind");
    assertThat(record.get("visible_after").isNull()).isTrue();
    assertThat(record.get("wanted").toString()).isEqualTo("{\"epoch\":\"f\",\"counter\":\"2\"}");
    assertThat(repeats).hasValue(0);
  }

  private static Answer answering(String way) {
    return switch (way) {
      case "visible" -> FakeShim.always(Visibility.VISIBLE);
      case "unproven" -> FakeShim.always(Visibility.unproven("ended"));
      case "unknown epoch" -> FakeShim.always(Visibility.unknownEpoch("?"));
      case "put off" -> FakeShim.always(Visibility.unanswered("it is recovering"));
      default -> FakeShim.DOWN;
    };
  }

  /** REC-13, REC-20: what cannot be proved, and a server that does not answer, are none; they are counted. */
  @ParameterizedTest
  @ValueSource(strings = {"visible", "unproven", "unknown epoch", "put off", "down"})
  void onlyNotYetIsAFinding(String way) {
    // What is visible is over by itself, however busy the machine is.
    Duration time = way.equals("visible") ? Duration.ofMinutes(1) : Duration.ofMillis(300);
    long before = FollowRegistry.followFor(time.toNanos());
    try {
      RegisteredStore store = FakeShim.store("posts", new Fake("p", answering(way)));
      try (LineageScope scope = Antipode.scope(ONE)) {
        over(FollowedRead.of(store, null), server(store), () -> octets(""), () -> octets("other"));
        assertThat(scope.isClosed()).isFalse();
      }
      Lines.settled();
      assertThat(total("followed_reads")).isOne();
      assertThat(total("unjudged_reads")).isEqualTo(way.equals("visible") ? 0 : 1);
      assertThat(lines.of()).isEmpty();
    } finally {
      FollowRegistry.followFor(before);
    }
  }

  /** REC-13: never invented. This shim proves no more than what it is asked, so that one answer says nothing of another. */
  @Test
  void aPositionBehindAnotherThatIsThereIsAskedForByItself() {
    RegisteredStore store = FakeShim.store("posts", new Fake("p", (ids, server) -> {
      Thread.sleep(20); // so that the reads come together
      return FakeShim.always(Visibility.VISIBLE).to(ids, server);
    }));
    for (int counter = 1; counter < 30; counter++) {
      try (LineageScope scope = Antipode.scope(Lineage.of(WriteId.position("posts", "e", counter)))) {
        over(FollowedRead.of(store, null), server(store));
        assertThat(scope.isClosed()).isFalse();
      }
    }
    Lines.settled();
    assertThat(total("behind")).isZero();
    assertThat(total("followed_reads")).isEqualTo(29);
  }

  /** REC-13: what barriers waited for in vain there makes no finding of what is visible. */
  @Test
  void afterWaitsInARowThatTimedOutNothingIsInvented() {
    WriteId lost = new WriteId("posts", "lost", new Ordered("", 1));
    WriteId there = new WriteId("posts", "there", new Ordered("", 1));
    RegisteredStore store = FakeShim.store("posts", new Fake("p", (ids, server) -> ids.stream()
        .map(id -> id.equals(there) ? Visibility.VISIBLE : Visibility.NOT_YET)
        .toList()));
    for (int number = 0; number < 6; number++) {
      ServerWait.at(server(store), Lineage.of(lost), Duration.ofMillis(20));
    }
    List<Thread> waiting = new ArrayList<>();
    Fake fake = (Fake) server(store).target();
    Thread waiter = new Thread(() -> ServerWait.at(server(store), Lineage.of(lost), Duration.ofSeconds(20)));
    waiter.setDaemon(true);
    waiting.add(waiter);
    waiter.start();
    try (LineageScope scope = Antipode.scope(Lineage.of(lost))) { // keeps one parked there
      over(FollowedRead.of(store, null), server(store));
      assertThat(scope.isClosed()).isFalse();
    }
    until(FollowRegistry::allLookedAt);
    try (LineageScope scope = Antipode.scope(Lineage.of(there))) {
      over(FollowedRead.of(store, null), server(store));
      assertThat(scope.isClosed()).isFalse();
    }
    until(() -> FollowRegistry.count() <= 1);
    assertThat(total("behind")).isZero();
    assertThat(fake.asked.get()).isPositive();
  }

  /** What dry-run gives up is no wait of anybody's: barriers beside it wait as before. */
  @Test
  void whatIsGivenUpOverloadsNobody() {
    WriteId lost = new WriteId("posts", "lost", new Ordered("", 1));
    AtomicBoolean isThere = new AtomicBoolean();
    RegisteredStore store = FakeShim.store("posts", new Fake("p", (ids, server) -> ids.stream()
        .map(id -> !id.equals(lost) && isThere.get() ? Visibility.VISIBLE : Visibility.NOT_YET)
        .toList()));
    for (int number = 0; number < 7; number++) {
      try (LineageScope scope = Antipode.scope(Lineage.of(lost))) {
        over(FollowedRead.of(store, null), server(store));
        assertThat(scope.isClosed()).isFalse();
      }
      until(FollowRegistry::allLookedAt);
      if (number < 6) {
        FollowRegistry.giveUpAll();
      }
    }
    Lineage wanted = Lineage.of(new WriteId("posts", "k", new Ordered("", 1)));
    Thread appears = new Thread(() -> {
      until(() -> ((ServerEngine) server(store)).live() > 1);
      isThere.set(true);
    });
    appears.start();
    assertThat(ServerWait.at(server(store), wanted, Duration.ofSeconds(20))).isEqualTo(Verdict.VISIBLE);
  }

  /** REC-12. */
  @Test
  void whatTheScopeWroteAfterTheReadWasSentIsNoneOfItsLineage() {
    RegisteredStore store = FakeShim.store("posts", new Fake("p", (ids, server) -> ids.stream()
        .map(id -> id.version().equals(new Ordered("e", 1)) ? Visibility.VISIBLE : Visibility.NOT_YET)
        .toList()));
    try (LineageScope scope = Antipode.scope()) {
      FollowedRead none = FollowedRead.of(store, null);
      scope.append(WriteId.position("posts", "e", 1)); // another task of the scope
      assertThat(none).isNull();
      FollowedRead followed = FollowedRead.of(store, null);
      scope.append(WriteId.position("posts", "e", 2));
      over(followed, server(store), () -> octets("v"), () -> octets("w"));
    }
    Lines.settled();
    assertThat(total("behind") + total("stale")).isZero();
    assertThat(total("followed_reads")).isOne();
  }

  /** REC-13. */
  @Test
  void inAStoreOfObjectsOnlyThoseThatAreReadAreLookedAt() {
    MemoryStore store = posts(Versions.OBJECT, 30_000);
    MemoryClient writer = store.client("a");
    MemoryClient reader = store.client("b");
    try (LineageScope scope = Antipode.scope()) {
      writer.set("k", "v");
      assertThat(reader.get("another")).isNull();
      assertThat(scope.isClosed()).isFalse();
    }
    assertThat(total("followed_reads")).isZero();
  }

  /** REC-12, BAR-48: neither {@code waitOnRead} nor {@code reading(after)} waits, or looks. */
  @Test
  void readsThatWouldWaitDoNotInDryRun() {
    MemoryStore store = posts(Versions.POSITION, 30_000);
    MemoryClient writer = store.client("a");
    MemoryClient reader = store.client("b", StoreOptions.named("posts").waitOnRead(true));
    Lineage lineage;
    try (LineageScope scope = Antipode.scope()) {
      writer.set("k", "v");
      lineage = scope.lineage();
      assertThat(reader.get("k")).isNull();
    }
    long looked = ServerWaiting.lookFor(Duration.ofSeconds(60).toNanos());
    try (Reading seen = Antipode.reading(lineage)) {
      assertThat(store.client("b").get("k")).isNull();
      assertThat(seen.after()).isPresent();
    } finally {
      ServerWaiting.lookFor(looked);
    }
    assertThat(total("followed_reads")).isEqualTo(2);
  }

  /** REC-10, REC-12. */
  @Test
  void withoutATraceChanceDecides() {
    Antipode.configure(Antipode.settings().sample(0.25));
    RegisteredStore store = FakeShim.store("posts", new Fake("p", FakeShim.always(Visibility.VISIBLE)));
    try (LineageScope scope = Antipode.scope(ONE)) {
      int followed = 0;
      for (int number = 0; number < 4000; number++) {
        followed += FollowedRead.of(store, null) == null ? 0 : 1;
      }
      assertThat(followed).isBetween(800, 1200);
      assertThat(total("reads")).isEqualTo(4000);
      Antipode.configure(Antipode.settings().sample(0));
      assertThat(FollowedRead.of(store, null)).isNull();
      assertThat(scope.isClosed()).isFalse();
    }
  }

  /** REC-15: what comes beyond is neither followed nor counted as followed. */
  @Test
  void soManyAreFollowedAndNoMore() {
    int before = FollowRegistry.most(3);
    try {
      RegisteredStore store = FakeShim.store("posts", new Fake("p", FakeShim.always(Visibility.NOT_YET)));
      try (LineageScope scope = Antipode.scope(ONE)) {
        for (int number = 0; number < 5; number++) {
          over(FollowedRead.of(store, null), server(store));
        }
        assertThat(scope.isClosed()).isFalse();
      }
      assertThat(total("followed_reads")).isEqualTo(3);
      until(FollowRegistry::allLookedAt);
      FollowRegistry.giveUpAll();
      assertThat(lines.of()).hasSize(3).allMatch(record -> record.get("visible_after").isNull());
    } finally {
      FollowRegistry.most(before);
    }
  }

  /** MONKEY-6, MONKEY-8: what dry-run reads once more chooses nothing, and makes the replica apply nothing. */
  @Test
  void aRepeatInMonkeyModeChoosesNothing() {
    AtomicInteger chosen = new AtomicInteger();
    MemoryStore store = MemoryStore.named("posts").monkey(read -> {
      chosen.incrementAndGet();
      return 1;
    });
    MemoryClient writer = store.client("a");
    MemoryClient reader = store.client("b");
    try (LineageScope scope = Antipode.scope()) {
      writer.set("k", "v");
      assertThat(reader.get("k")).isNull();
      assertThat(scope.isClosed()).isFalse();
    }
    until(FollowRegistry::allLookedAt);
    writer.set("k", "w");
    assertThat(reader.get("k")).isEqualTo("v");
    assertThat(lines.finding().get("confirmed").asText()).isEqualTo("repeat");
    assertThat(chosen).hasValue(2);
  }

  /** REC-13: whatever a shim's own code throws, the application that reads never gets it. */
  @Test
  void nothingIsThrownAtWhoReads() {
    RegisteredStore store = FakeShim.store("posts", new Fake("p", FakeShim.always(Visibility.NOT_YET)));
    try (LineageScope scope = Antipode.scope(ONE)) {
      over(FollowedRead.of(store, null), server(store), () -> {
        throw new IllegalStateException("a shim's defect");
      }, () -> null);
      over(FollowedRead.of(store, null), null);
      assertThat(scope.isClosed()).isFalse();
    }
    assertThat(total("followed_reads")).isZero();
  }

  /** REC-6: a correct run of thousands of messages, each of which waits for what it reads, has no finding. */
  @Test
  void readsBehindABarrierAreNoFindingOverManyRequests() {
    MemoryStore store = MemoryStore.named("posts").regions("a", "b", "c").lag(Duration.ofNanos(500_000));
    MemoryClient writer = store.client("a");
    List<MemoryClient> readers = List.of(store.client("b"), store.client("c"));
    RegisteredStore registered = Registry.current().get("posts");
    for (int number = 0; number < 3000; number++) {
      String message;
      try (LineageScope scope = Antipode.scope()) {
        writer.set("post", String.valueOf(number));
        message = Antipode.serialize();
        assertThat(scope.isClosed()).isFalse();
      }
      String region = number % 2 == 0 ? "b" : "c";
      try (LineageScope scope = Antipode.messageScope(message)) { // what a barrier does where this site alone enforces
        Server server = registered.serverAt("memory://posts/" + region);
        assertThat(ServerWait.at(server, scope.lineage(), Duration.ofSeconds(20)))
            .isEqualTo(Verdict.VISIBLE);
        assertThat(readers.get(number % 2).get("post")).isEqualTo(String.valueOf(number));
      }
    }
    Lines.settled();
    assertThat(total("followed_reads")).isEqualTo(3000);
    assertThat(lines.of("behind", "stale")).isEmpty();
  }

  private static void over(FollowedRead read, Server server) {
    read.returned(new ReadReply(server, List.of()), null);
  }

  private static void over(FollowedRead read, Server server, Supplier<?> shown, Callable<?> again) {
    read.returned(new ReadReply(server, List.of(), shown, again), null);
  }
}
