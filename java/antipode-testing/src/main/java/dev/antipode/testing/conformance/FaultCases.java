package dev.antipode.testing.conformance;

import static dev.antipode.testing.conformance.Checks.check;

import dev.antipode.Antipode;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.Opaque;
import dev.antipode.Ordered;
import dev.antipode.Settings;
import dev.antipode.WriteId;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.Isolated;
import dev.antipode.testing.StoreUnderTest;
import java.io.IOException;
import java.time.Duration;
import java.util.List;

/** Cases about waits in vain, and faults of our own, which answer for nothing else (BAR-13, BAR-40, BAR-59). */
public interface FaultCases extends ConformanceCases {
  /** Behind waits in vain for a key or epoch, what is there is looked up, and what comes in time passes (BAR-40). */
  @Case
  default void reopenedNeed() {
    StoreUnderTest store = store();
    Antipode.configure(Settings.defaults().freePathTtl(Duration.ZERO));
    String key = store.newKey();
    Duration deadline = store.brief().multipliedBy(2);
    Lineage there = store.written(key, "v");
    store.until(() -> store.shows(key, "v"), "the write arrives");
    Lineage never = Lineage.of(there.ofStore(store.name()).stream().map(FaultCases::unheardOf).toList());
    for (int time = 0; time < 7; time++) {
      check(!store.judge(never, deadline).satisfied(), "a write that nobody made passes");
    }
    BarrierResult result = store.judge(there, deadline);
    check(result.satisfied(), "what is there is not looked up: " + result.explain());
    store.partition(store.near());
    String lateKey = store.newKey();
    Lineage late = store.written(lateKey, "v");
    ParkedBarrier parked = ParkedBarrier.judging(store, late);
    store.until(() -> store.registered().parked() == 1 || parked.isDone(), "the barrier waits");
    store.heal(store.near());
    check(parked.result().satisfied(), "what comes in time does not pass");
    check(store.shows(lateKey, "v"), "a replica has not got it");
  }

  /** Return a write like this one that nobody has made: far ahead, or under a mark of nobody's. */
  private static WriteId unheardOf(WriteId id) {
    return new WriteId(
        id.store(),
        id.key(),
        id.version() instanceof Ordered version ? new Ordered(version.epoch(), -1L) : new Opaque("kit-unheard-of"));
  }

  /** An exception of our own while a server is asked proves nothing, and leaves nothing out (BAR-13, BAR-61). */
  @Case
  default void ownFault() {
    StoreUnderTest store = store();
    store.written(); // its clients are wrapped in the case's own registry
    Shim shim = store.registered().shim();
    List<Object> targets = DelegatingShim.targets(store.registered());
    for (Throwable fault : new Throwable[] {
      new IllegalStateException("no thread"), new OutOfMemoryError("no memory"), new IOException("socket: Too many open files")
    }) {
      for (boolean isEvery : new boolean[] {false, true}) {
        try (Isolated own = new Isolated()) {
          Antipode.configure(Settings.defaults().freePathTtl(Duration.ZERO).replicaOutAfter(store.brief().multipliedBy(4)));
          Faulty faulty = new Faulty(shim, isEvery ? null : shim.address(targets.get(0)));
          RegisteredStore registered = DelegatingShim.register(store, faulty, () -> targets);
          check(own != null && registered.servers(false).size() == targets.size(), "servers that are asked");
          check(store.judge(store.written()).satisfied(), "no pass");
          faulty.fault = fault;
          String key = store.newKey();
          Lineage lineage = store.written(key, "v");
          for (int time = 0; time < 5; time++) {
            BarrierResult result = store.judge(lineage, store.brief().multipliedBy(2));
            check(!result.satisfied(), fault + ": a pass: " + result.explain());
            check(result.store(store.name()).leftOut().isEmpty(), fault + ": it is left out");
          }
          faulty.fault = null;
          store.until(() -> store.judge(lineage, Duration.ofSeconds(1)).complete(), "it is whole again");
          check(store.shows(key, "v"), "a replica has not got it");
        }
      }
    }
  }

  /** A shim that fails at one server, or at each. */
  final class Faulty extends DelegatingShim {
    private final String broken; // null: each
    private volatile Throwable fault; // null: none

    Faulty(Shim real, String broken) {
      super(real);
      this.broken = broken;
    }

    private void fail(Server server) throws Exception {
      if (broken != null && !server.address().equals(broken)) {
        return;
      }
      if (fault instanceof Error error) {
        throw error;
      }
      if (fault instanceof Exception error) {
        throw error;
      }
    }

    @Override
    public List<Visibility> visible(List<WriteId> ids, Server server) throws Exception {
      fail(server);
      return super.visible(ids, server);
    }

    @Override
    public List<Visibility> await(List<WriteId> ids, Server server, Duration timeout) throws Exception {
      fail(server);
      return super.await(ids, server, timeout);
    }
  }
}
