package dev.antipode.testing.conformance;

import static dev.antipode.testing.conformance.Checks.check;

import dev.antipode.Antipode;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.OnReplicaOut;
import dev.antipode.ServerResult;
import dev.antipode.Settings;
import dev.antipode.Verdict;
import dev.antipode.testing.StoreUnderTest;
import java.time.Duration;
import java.util.List;

/** Cases about replicas that lag, are cut off or do not answer (BAR-11, BAR-21 to BAR-27). */
public interface LinkCases extends ConformanceCases {
  /** No pass while one replica of the region has not got the write; a pass once it has. */
  @Case
  default void partitionedReplica() {
    StoreUnderTest store = store();
    String key = store.newKey();
    store.partition(store.near());
    Lineage lineage = store.written(key, "v");
    check(!store.judge(lineage, store.brief()).satisfied(), "a pass without the write");
    check(store.look(key, store.near()) == null, "the partition does not part");
    store.heal(store.near());
    check(store.judge(lineage).satisfied(), "no pass");
    check(store.shows(key, "v"), "a replica has not got it");
  }

  /** A barrier that waits while the replica is cut off is released by the healing. */
  @Case
  default void parkedInAPartition() {
    StoreUnderTest store = store();
    String key = store.newKey();
    store.partition(store.near());
    Lineage lineage = store.written(key, "v");
    ParkedBarrier parked = ParkedBarrier.judging(store, lineage);
    store.until(() -> store.registered().parked() == 1, "the barrier waits");
    store.heal(store.near());
    check(parked.result().satisfied(), "the healing does not release it");
    check(store.shows(key, "v"), "a replica has not got it");
  }

  /** A pass speaks of every replica that readers may use, the slowest too, and names them (BAR-21, BAR-23). */
  @Case
  default void replicasOfDifferentLag() {
    StoreUnderTest store = store();
    String key = store.newKey();
    store.setLag(store.far(), Duration.ofMillis(300));
    BarrierResult result = store.judge(store.written(key, "v"));
    check(result.complete(), "not complete");
    check(store.shows(key, "v"), "a replica has not got it");
    List<ServerResult> servers = result.store(store.name()).servers();
    check(
        servers.stream().map(ServerResult::address).distinct().count() == store.replicas().size(),
        "not every replica is named");
  }

  /** A replica that does not answer is left out by name, or makes the store unproven, as was set (BAR-26). */
  @Case
  default void frozenReplica() {
    StoreUnderTest store = store();
    String frozen = store.far();
    Antipode.configure(Settings.defaults().replicaOutAfter(Duration.ofSeconds(1)));
    store.until(() -> store.judge(store.written()).complete(), "both replicas answer");
    String key = store.newKey();
    Lineage lineage;
    store.freeze(frozen);
    try {
      lineage = store.written(key, "v");
      store.until(() -> leftOut(lineage) == 1, "the frozen replica is left out, and named");
      check(store.shows(key, "v", store.near()), "the other replica has not got it");
      Antipode.configure(Settings.defaults().onReplicaOut(OnReplicaOut.FAIL));
      Lineage late = store.written();
      store.until(
          () -> store.verdict(late, Duration.ofSeconds(1)) == Verdict.UNPROVEN, "the store is unproven without it");
      Antipode.configure(Settings.defaults().onReplicaOut(OnReplicaOut.NAME));
    } finally {
      store.thaw(frozen);
    }
    store.until(
        () -> store.judge(lineage, Duration.ofSeconds(1)).complete(), "it is judged again once it answers (BAR-27)");
    check(store.shows(key, "v"), "a replica has not got it");
  }

  /** How many replicas a pass leaves out; -1 where it does not pass. */
  private int leftOut(Lineage lineage) {
    BarrierResult result = store().judge(lineage, Duration.ofSeconds(1));
    int left = result.store(store().name()).leftOut().size();
    check(left == 0 || !result.complete(), "complete without a replica");
    return result.satisfied() ? left : -1;
  }
}
