package dev.antipode.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierException;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.ConfigurationException;
import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Reading;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Monkey mode: any version that a replica may show, and none that it may not (spec MONKEY). */
@ExtendWith(AntipodeIsolated.class)
class MonkeyStoreTest {
  private static final Duration PATIENCE = Duration.ofSeconds(20);

  private static MemoryStore stalest(Versions versions) {
    return MemoryStore.named("s").versions(versions).monkey(StaleRead::most);
  }

  private static BarrierOptions patient() {
    return BarrierOptions.defaults().timeout(PATIENCE);
  }

  // What is legal

  @ParameterizedTest
  @EnumSource
  void everyVersionCanBeRead_MONKEY_3(Versions versions) {
    List<String> seen = new ArrayList<>();
    for (int behind = 0; behind < 5; behind++) {
      int wanted = behind;
      MemoryStore store =
          MemoryStore.named("s" + behind).versions(versions).monkey(read -> Math.min(wanted, read.most()));
      MemoryClient a = store.client("a");
      for (String value : new String[] {"1", "2", null, "3"}) {
        if (value == null) {
          a.delete("k");
        } else {
          a.set("k", value);
        }
        a.set("other", "x");
      }
      seen.add(store.client("b").get("k"));
    }
    assertThat(seen).containsExactly("3", null, "2", "1", null);
  }

  /** Reads at one replica never go back, whichever keys they are of. */
  @ParameterizedTest
  @EnumSource
  void whatWasReadIsNoChoiceAgain_MONKEY_2(Versions versions) {
    List<StaleRead> choices = new ArrayList<>();
    MemoryStore store = MemoryStore.named("s").versions(versions).monkey(read -> {
      choices.add(read);
      return read.key().equals(Key.of("second")) ? 0 : read.most();
    });
    MemoryClient a = store.client("a");
    a.set("first", "1");
    a.set("second", "1");
    a.set("first", "2");
    MemoryClient b = store.client("b");
    assertThat(b.get("first")).isNull();
    assertThat(b.get("second")).isEqualTo("1"); // and so the write of the first before it
    assertThat(b.get("first")).isEqualTo("1");
    assertThat(b.get("second")).isEqualTo("1");
    assertThat(choices).containsExactly(
        new StaleRead("s", "b", Key.of("first"), 2),
        new StaleRead("s", "b", Key.of("second"), 1),
        new StaleRead("s", "b", Key.of("first"), 1));
  }

  @ParameterizedTest
  @EnumSource
  void thereIsNothingToChooseAtAPrimaryOrWhereNothingCanArrive_MONKEY_4(Versions versions) {
    MemoryStore store = MemoryStore.named("s").versions(versions).monkey(read -> {
      throw new AssertionError("there is nothing to choose: " + read);
    });
    MemoryClient a = store.client("a");
    MemoryClient b = store.client("b");
    assertThat(b.get("k")).isNull();
    store.freeze("b");
    a.set("k", "1");
    assertThat(a.get("k")).isEqualTo("1");
    assertThat(b.get("k")).isNull();
    assertThat(store.look("b", "k")).isNull();
    store.heal("b");
    a.set("other", "1");
    Lineage last;
    try (LineageScope scope = Antipode.scope()) {
      a.set("k", "2");
      last = scope.lineage();
    }
    Antipode.configure(Antipode.settings().timeout(PATIENCE));
    try (Reading seen = Antipode.reading(last)) {
      assertThat(b.get("k")).isEqualTo("2");
    }
    assertThat(store.look("b", "other")).isEqualTo("1");
  }

  @Test
  void aReplicaOfAReplicaReadsWhatCanComeByThat_MONKEY_3() {
    MemoryStore store = MemoryStore.named("s").regions("a", "b", "c").monkey(read -> 0);
    MemoryClient a = store.client("a");
    store.client("b");
    MemoryClient c = store.client("c");
    store.repoint("c", "b");
    a.set("k", "1");
    assertThat(c.get("k")).isEqualTo("1");
    assertThat(store.look("b", "k")).isEqualTo("1");
    store.freeze("b");
    a.set("k", "2");
    assertThat(c.get("k")).isEqualTo("1");
    store.heal("b");
    try (LineageScope scope = Antipode.scope()) {
      a.set("k", "3");
      assertThat(Antipode.barrier(patient()).satisfied()).isTrue();
    }
    assertThat(store.look("b", "k")).isEqualTo("3");
    assertThat(store.look("c", "k")).isEqualTo("3");
  }

  // Waiting, and only looking

  /** And nothing more is applied than that. */
  @ParameterizedTest
  @EnumSource
  void aBarrierLeavesNothingStaleOfWhatItWaitedFor_MONKEY_5(Versions versions) {
    MemoryStore store = stalest(versions);
    MemoryClient a = store.client("a");
    MemoryClient b = store.client("b");
    store.put("k", "0");
    String message;
    try (LineageScope scope = Antipode.scope()) {
      a.set("k", "1");
      assertThat(b.get("k")).isNull();
      message = Antipode.serialize();
    }
    if (versions != Versions.OPAQUE) { // what was overwritten there proves nothing
      store.put("k", "2");
    }
    store.put("later", "x");
    try (LineageScope scope = Antipode.messageScope(message)) {
      assertThat(Antipode.barrier(patient()).satisfied()).isTrue();
    }
    assertThat(b.get("k")).isEqualTo("1");
    assertThat(store.look("b", "later")).isNull();
  }

  @Test
  void aReadThatWaitsWaits_MONKEY_5() {
    MemoryStore store = stalest(Versions.POSITION);
    MemoryClient a = store.client("a");
    MemoryClient b = store.client("b", StoreOptions.named("s").waitOnRead(true).timeout(PATIENCE));
    try (LineageScope scope = Antipode.scope()) {
      a.set("k", "1");
      assertThat(b.get("k")).isEqualTo("1");
    }
  }

  @Test
  void aBarrierThatBlocksNobodyWaits_MONKEY_5() throws Exception {
    MemoryStore store = stalest(Versions.OBJECT);
    MemoryClient a = store.client("a");
    MemoryClient b = store.client("b");
    try (LineageScope scope = Antipode.scope()) {
      a.set("k", "1");
      assertThat(Antipode.barrierAsync(patient()).thenApply(result -> b.get("k")).get(20, TimeUnit.SECONDS))
          .isEqualTo("1");
    }
  }

  /** With a deadline of zero, in dry-run, and after a barrier has given up. */
  @Test
  void lookingAppliesNothing_MONKEY_6() throws Exception {
    List<CountDownLatch> asked = List.of(new CountDownLatch(1), new CountDownLatch(1));
    MemoryStore store = stalest(Versions.POSITION).answeredBy(() -> new MemoryShim.Positions() {
      @Override
      public Capabilities capabilities() {
        return super.capabilities().blockingWait(true);
      }

      @Override
      public List<Visibility> await(List<WriteId> ids, Server server, Duration timeout) {
        List<Visibility> answers = super.await(ids, server, timeout);
        if (!server.awaited()) {
          asked.stream().filter(latch -> latch.getCount() > 0).findFirst().ifPresent(CountDownLatch::countDown);
        }
        return answers;
      }
    });
    MemoryClient a = store.client("a");
    MemoryClient b = store.client("b");
    try (LineageScope scope = Antipode.scope()) {
      a.set("k", "1");
      assertThatThrownBy(() -> Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ZERO)))
          .isInstanceOf(BarrierTimeoutException.class);
      assertThat(Antipode.barrier(BarrierOptions.defaults().dryRun(true)).satisfied()).isTrue();
      store.freeze("b");
      assertThatThrownBy(() -> Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofMillis(50))))
          .isInstanceOf(BarrierTimeoutException.class);
      store.heal("b");
      for (CountDownLatch each : asked) {
        assertThat(each.await(20, TimeUnit.SECONDS)).as("the prober, and what is followed in dry-run").isTrue();
      }
      assertThat(b.get("k")).isNull();
      assertThat(Antipode.barrier(patient()).satisfied()).isTrue();
      assertThat(b.get("k")).isEqualTo("1");
    }
  }

  /** A failover is as in every mode. */
  @ParameterizedTest
  @EnumSource
  void aLostWriteIsNoPass_MONKEY_2(Versions versions) {
    MemoryStore store = stalest(versions);
    MemoryClient a = store.client("a");
    store.client("b");
    try (LineageScope scope = Antipode.scope()) {
      a.set("k", "1");
      store.promote("b", 1);
      assertThatThrownBy(() -> Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofMillis(300))))
          .isInstanceOf(BarrierException.class);
    }
  }

  // Seeds and threads

  private static List<String> read(MemoryClient client) {
    return IntStream.range(0, 50).mapToObj(number -> String.valueOf(client.get("k" + number))).toList();
  }

  private static List<List<String>> read(String name, long seed, int threads) throws Exception {
    MemoryStore store = MemoryStore.named(name).regions("a", "b", "c", "d").monkey(seed);
    MemoryClient a = store.client("a");
    IntStream.range(0, 50).forEach(number -> a.set("k" + number, "v"));
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    try {
      List<Future<List<String>>> reads = new ArrayList<>();
      for (String region : List.of("b", "c", "d")) {
        MemoryClient client = store.client(region);
        reads.add(pool.submit(() -> read(client)));
      }
      List<List<String>> all = new ArrayList<>();
      for (Future<List<String>> each : reads) {
        all.add(each.get(20, TimeUnit.SECONDS));
      }
      return all;
    } finally {
      pool.shutdownNow();
    }
  }

  @Test
  void aSeedRepeatsItselfWhateverOtherRegionsReadAndAnotherOneDiffers_MONKEY_8() throws Exception {
    Set<List<List<String>>> seen = new HashSet<>();
    for (long seed : new long[] {0, 1, 2, -1}) {
      List<List<String>> alone = read("alone" + seed, seed, 1);
      assertThat(read("beside" + seed, seed, 3)).isEqualTo(alone);
      seen.add(alone);
    }
    assertThat(seen).hasSize(4);
  }

  @Test
  void threadsAtOneReplicaReadWhatIsLegal_MONKEY_2() throws Exception {
    MemoryStore store = MemoryStore.named("s").monkey(7);
    MemoryClient a = store.client("a");
    MemoryClient b = store.client("b");
    ExecutorService pool = Executors.newFixedThreadPool(4);
    try {
      List<Future<int[]>> reads = new ArrayList<>();
      for (int thread = 0; thread < 4; thread++) {
        reads.add(pool.submit(() -> IntStream.range(0, 300)
            .mapToObj(each -> b.get("k")).mapToInt(value -> value == null ? -1 : Integer.parseInt(value))
            .toArray()));
      }
      for (int value = 0; value < 300; value++) {
        a.set("k", String.valueOf(value));
      }
      for (Future<int[]> each : reads) {
        int[] found = each.get(20, TimeUnit.SECONDS);
        int[] sorted = found.clone();
        Arrays.sort(sorted);
        assertThat(found).isEqualTo(sorted);
      }
    } finally {
      pool.shutdownNow();
    }
  }

  // Mistakes

  @Test
  void thereIsNoLag_MONKEY_1() {
    Duration lag = Duration.ofMillis(80);
    assertThatThrownBy(() -> MemoryStore.named("s").lag(lag).monkey(7))
        .isInstanceOf(ConfigurationException.class).hasMessageContaining("no clock");
    assertThatThrownBy(() -> MemoryStore.named("s").monkey(7).lag("b", lag))
        .isInstanceOf(ConfigurationException.class).hasMessageContaining("no clock");
    assertThatThrownBy(() -> MemoryStore.named("s").monkey(7).setLag("b", lag))
        .isInstanceOf(ConfigurationException.class).hasMessageContaining("no clock");
    assertThat(MemoryStore.named("s").lag(Duration.ZERO).monkey(7).look("b", "k")).isNull();
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 2, Integer.MAX_VALUE})
  void anAnswerOutOfRangeIsRefused_MONKEY_7(int answer) {
    MemoryStore store = MemoryStore.named("s").monkey(read -> answer);
    store.put("k", "1");
    MemoryClient b = store.client("b");
    assertThatThrownBy(() -> b.get("k"))
        .isInstanceOf(ConfigurationException.class).hasMessageContaining("want 0 (the newest) to 1");
    assertThat(store.look("b", "k")).isNull();
  }
}
