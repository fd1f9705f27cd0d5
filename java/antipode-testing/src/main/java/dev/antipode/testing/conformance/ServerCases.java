package dev.antipode.testing.conformance;

import static dev.antipode.testing.conformance.Checks.check;
import static dev.antipode.testing.conformance.Checks.checkEquals;

import dev.antipode.Antipode;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.Settings;
import dev.antipode.StoreResult;
import dev.antipode.UnprovenKind;
import dev.antipode.Verdict;
import dev.antipode.internal.engine.Discovery;
import dev.antipode.shim.Shim;
import dev.antipode.testing.Isolated;
import dev.antipode.testing.StoreUnderTest;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.Stream;

/** Cases about which servers a pass speaks of, where somebody else has to say so (BAR-22, BAR-52 to BAR-55). */
public interface ServerCases extends ConformanceCases {
  /** The server of a wrapped client that has not connected yet is waited for like the others (BAR-52). */
  @Case
  default void clientBeforeItsFirstUse() {
    StoreUnderTest store = store();
    store.partition(store.near());
    String key = store.newKey();
    Lineage lineage = store.written(key, "v");
    try (Isolated own = new Isolated()) {
      List<Object> clients =
          Stream.of(store.primary(), store.near()).map(store::wrapUnused).filter(client -> client != null).toList();
      if (clients.size() < 2) {
        Checks.skip("its clients are told apart by no server, or connect when they are made");
      }
      check(!store.judge(lineage, store.brief()).satisfied(), "the primary is judged alone");
      store.heal(store.near());
      BarrierResult result = store.judge(lineage);
      check(own != null && result.complete(), "no whole pass: " + result.explain());
      checkEquals(2, result.store(store.name()).servers().size(), "servers that are judged");
    }
    check(store.shows(key, "v", store.near()), "the replica has not got it");
  }

  /** Runs with servers that are asked for at each barrier; {@code stands} is how long an answer stands. */
  private static void often(Duration stands) {
    Discovery.hurry(0, stands.toNanos());
  }

  private static void atLeisure() {
    Discovery.hurry(TimeUnit.SECONDS.toNanos(5), TimeUnit.SECONDS.toNanos(30));
  }

  /** The last answer stands for a while; then nothing is proved, least of all by the primary alone (BAR-53). */
  @Case
  default void emptyDiscovery() {
    StoreUnderTest store = store();
    store.written(); // its clients are wrapped in the case's own registry
    Shim shim = store.registered().shim();
    List<Object> named = DelegatingShim.targets(store.registered());
    AtomicReference<List<Object>> answer = new AtomicReference<>(named);
    often(Duration.ofMinutes(5));
    try (Isolated own = new Isolated()) {
      DelegatingShim.register(store, new DelegatingShim(shim), answer::get);
      store.until(() -> own != null && store.judge(store.written()).complete(), "the servers that are named are judged");
      answer.set(List.of());
      store.partition(store.near());
      Lineage lineage = store.written();
      check(!store.judge(lineage, store.brief()).satisfied(), "an empty answer passes");
      often(Duration.ZERO);
      StoreResult late = store.judge(lineage, store.brief()).store(store.name());
      checkEquals(Verdict.UNPROVEN, late.verdict(), "the verdict");
      checkEquals(UnprovenKind.DISCOVERY, late.kind(), "its kind");
      answer.set(named);
      often(Duration.ofMinutes(5));
      store.heal(store.near());
      store.until(() -> store.judge(lineage, Duration.ofSeconds(1)).complete(), "they are named again");
    } finally {
      atLeisure();
    }
  }

  /** It is named as left out, and no pass is complete, for as long as a connection may lead there (BAR-54). */
  @Case
  default void serverTakenAway() {
    StoreUnderTest store = store();
    store.written(); // its clients are wrapped in the case's own registry
    Shim shim = store.registered().shim();
    List<Object> named = DelegatingShim.targets(store.registered());
    if (named.size() < 2) {
      Checks.skip("one server is all that it has");
    }
    AtomicReference<List<Object>> answer = new AtomicReference<>(named);
    often(Duration.ofMinutes(5));
    try (Isolated own = new Isolated()) {
      DelegatingShim.register(store, new DelegatingShim(shim), answer::get);
      Lineage lineage = store.written();
      store.until(() -> own != null && store.judge(lineage).complete(), "the servers that are named are judged");
      Object gone = named.get(named.size() - 1);
      answer.set(named.subList(0, named.size() - 1));
      store.until(
          () -> store.judge(lineage).store(store.name()).leftOut().equals(List.of(shim.address(gone))),
          "it is named as left out");
      check(store.judge(lineage).satisfied(), "no pass");
      check(!store.judge(lineage).complete(), "the barrier is complete");
      Antipode.configure(Settings.defaults().leftServer(Duration.ZERO));
      store.until(() -> store.judge(lineage).complete(), "no connection leads there any more");
    } finally {
      atLeisure();
    }
  }

  /** A client whose wrap names no servers is judged also where another wrap has a list (BAR-22). */
  @Case(queues = false)
  default void readerInNobodysList() {
    StoreUnderTest store = store();
    for (boolean isListedFirst : new boolean[] {true, false}) {
      store.partition(store.far());
      String key = store.newKey();
      Lineage lineage = store.written(key, "v");
      store.until(() -> store.shows(key, "v", store.near()), "the write reaches the near replica");
      try (Isolated own = new Isolated()) {
        List<String> order = isListedFirst ? List.of(store.near(), store.far()) : List.of(store.far(), store.near());
        for (String server : order) {
          store.wrapClient(server, server.equals(store.near()) ? List.of(server) : null, false);
        }
        BarrierResult result = store.judge(lineage, store.brief());
        check(own != null && !result.satisfied() && !result.complete(), "a reader is not judged: " + result.explain());
        store.heal(store.far());
        result = store.judge(lineage);
        check(result.complete(), "no whole pass: " + result.explain());
        checkEquals(2, result.store(store.name()).servers().size(), "servers that are judged");
      }
      check(store.shows(key, "v"), "a replica has not got it");
    }
  }

  /** Where an address comes to lead to a server that is behind, the one before proves nothing any more (BAR-55). */
  @Case
  default void addressThatMoves() {
    StoreUnderTest store = store();
    if (!store.registered().shim().reconnects()) {
      Checks.skip("what its connection has seen is not seen again: it is not given up");
    }
    try (Isolated own = new Isolated()) {
      Antipode.configure(Settings.defaults().reconnect(Duration.ofMillis(200)));
      Consumer<String> lead = store.listMoving(store.near());
      store.until(
          () -> own != null && store.judge(store.written(), Duration.ofSeconds(1)).complete(), "the address is judged");
      store.partition(store.far());
      lead.accept(store.far());
      store.until(
          () -> !store.judge(store.written(), store.brief()).satisfied(), "it is asked where the address leads now");
      String last = "";
      Lineage lineage = Lineage.EMPTY;
      for (String key : Collections.nCopies(5, "moved").stream().map(store::newKey).toList()) {
        last = key;
        lineage = store.written(key, "v");
        check(!store.judge(lineage, store.brief()).satisfied(), "the server before proves something");
      }
      check(store.look(last, store.far()) == null, "the partition does not part");
      store.heal(store.far());
      Lineage late = lineage;
      store.until(() -> store.judge(late, Duration.ofSeconds(1)).complete(), "the server behind the address has caught up");
      check(store.shows(last, "v", store.far()), "the replica has not got it");
    }
  }
}
