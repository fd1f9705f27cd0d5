package dev.antipode.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.ConfigurationException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Ordered;
import dev.antipode.Reading;
import dev.antipode.Settings;
import dev.antipode.WriteId;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.testing.AntipodeIsolated;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The embedded store: replication, faults, marks; waits on it are the conformance kit's. */
@ExtendWith(AntipodeIsolated.class)
class MemoryStoreTest {
  private static Lineage written(MemoryClient client, String value) {
    try (LineageScope scope = Antipode.scope()) {
      if (value == null) {
        client.delete("k");
      } else {
        client.set("k", value);
      }
      return scope.lineage();
    }
  }

  /** SHIM-10, SHIM-24: versions of objects grow across deletes and promotions; EPOCH-25: without an epoch. */
  @Test
  void objectVersionsGrow() {
    MemoryStore store = MemoryStore.named("s").versions(Versions.OBJECT);
    MemoryClient a = store.client("a");
    List<Lineage> lineages = new ArrayList<>();
    for (String value : new String[] {"1", "2", null, "3"}) {
      lineages.add(written(a, value));
    }
    store.promote("b", 1);
    lineages.add(written(store.client("b"), "4"));
    List<Ordered> versions =
        lineages.stream().map(lineage -> (Ordered) lineage.ofStore("s").get(0).version()).toList();
    assertThat(versions).allMatch(version -> version.epoch().isEmpty()).doesNotHaveDuplicates();
    assertThat(versions).isSortedAccordingTo((one, other) -> one.compareCounter(other.counter()));
  }

  @Test
  void anAnswerThatIsLostLeavesTheOutcomeUnknown() {
    MemoryStore store = MemoryStore.named("s");
    MemoryClient a = store.client("a");
    store.loseNextAnswer();
    try (LineageScope scope = Antipode.scope()) {
      assertThatThrownBy(() -> a.set("k", "v")).isInstanceOf(UncheckedIOException.class);
      assertThat(scope.lineage().incomplete()).containsExactly("s");
      Lineage handedOut = scope.lineage(); // SCOPE-20: who waits for it knows nothing of the write
      assertThat(Antipode.barrier(BarrierOptions.defaults().lineage(handedOut)).complete()).isFalse();
    }
    assertThat(store.look("a", "k")).isEqualTo("v");
    MemoryClient b = store.client("b");
    try (LineageScope scope = Antipode.scope()) {
      assertThatThrownBy(() -> b.set("k", "w")).isInstanceOf(ReadOnlyReplicaException.class);
      assertThat(scope.pending()).isEmpty();
    }
  }

  /** EPOCH-16 to EPOCH-18: a new primary marks the end of the epoch before it, and marks only grow. */
  @Test
  void marksOnlyGrow() {
    MemoryStore store = MemoryStore.named("s");
    WriteId last = written(store.client("a"), "v").ofStore("s").get(0);
    Ordered position = (Ordered) last.version();
    store.promote("b");
    Map<String, Long> marks = store.epochs();
    assertThat(Long.compareUnsigned(marks.get(position.epoch()), position.counter())).isNotNegative();
    store.settle(position.epoch());
    assertThat(store.epochs().get(position.epoch())).isEqualTo(-1L);
    store.promote("a");
    assertThat(store.epochs()).containsEntry(position.epoch(), -1L).hasSize(3);
  }

  /** SHIM-14, BAR-48: in mode off nothing is recorded, and what is read has no lineage. */
  @Test
  void offRecordsNothing() {
    MemoryStore store = MemoryStore.named("s");
    Antipode.configure(Settings.defaults().mode(Mode.OFF));
    assertThat(written(store.client("a"), "v")).isEqualTo(Lineage.EMPTY);
    Antipode.configure(Settings.defaults().mode(Mode.ENFORCE));
    try (LineageScope scope = Antipode.scope(); Reading seen = Antipode.reading()) {
      assertThat(store.client("a").getOctets("k")).containsExactly('v');
      assertThat(seen.lineage().isComplete()).isTrue();
      assertThat(seen.lineage().size()).isEqualTo(1);
      assertThat(scope.lineage().isEmpty()).isTrue();
    }
  }

  @Test
  void mistakesAreNamed() {
    assertThatThrownBy(() -> MemoryStore.named("s").regions("a", "a")).hasMessageContaining("different names");
    MemoryStore store = MemoryStore.named("s").regions("a", "b", "c");
    assertThatThrownBy(() -> store.client("z")).isInstanceOf(ConfigurationException.class);
    assertThatThrownBy(() -> store.lag("z", Duration.ZERO)).isInstanceOf(ConfigurationException.class);
    assertThatThrownBy(() -> store.promote("a")).hasMessageContaining("primary already");
    assertThatThrownBy(() -> store.promote("b", 1)).hasMessageContaining("writes were made");
    store.repoint("c", "b");
    assertThatThrownBy(() -> store.repoint("b", "c")).hasMessageContaining("circle");
    assertThatThrownBy(() -> MemoryStore.named("").client("a")).isInstanceOf(ConfigurationException.class);
  }
}
