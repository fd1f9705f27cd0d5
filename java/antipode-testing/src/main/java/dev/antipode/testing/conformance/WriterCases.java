package dev.antipode.testing.conformance;

import static dev.antipode.testing.conformance.Checks.check;
import static dev.antipode.testing.conformance.Checks.checkEquals;

import dev.antipode.Antipode;
import dev.antipode.BarrierResult;
import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.OnPending;
import dev.antipode.Opaque;
import dev.antipode.Ordered;
import dev.antipode.PendingWriteException;
import dev.antipode.Settings;
import dev.antipode.UnfitStoreException;
import dev.antipode.WriteId;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.testing.CapturedLogs;
import dev.antipode.testing.StoreUnderTest;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;

/** Cases about writers: at once, in transactions, of unknown outcome, without rights (SCOPE-14 to SCOPE-18). */
public interface WriterCases extends ConformanceCases {
  /** How many write at once. */
  int WRITERS = 4;

  /** How often each writes. */
  int EACH = 25;

  /** Requests that write the same objects at once: each one's writes, or later ones, are waited for. */
  @Case
  default void concurrentWriters() {
    StoreUnderTest store = store();
    boolean isQueue = store.capabilities().tap();
    String shared = store.newKey("shared");
    List<List<String>> keys = keys();
    ConcurrentLinkedQueue<Lineage> lineages = new ConcurrentLinkedQueue<>();
    inThreads(number -> {
      try (LineageScope opened = Antipode.scope()) {
        for (String key : keys.get(number)) {
          store.write(key, "v");
          if (!isQueue) {
            store.write(shared, Integer.toString(number));
          }
        }
        lineages.add(opened.lineage());
      }
    });
    Lineage whole = Lineage.EMPTY;
    for (Lineage lineage : lineages) {
      check(!lineage.ofStore(store.name()).isEmpty() && lineage.isComplete(), "a writer's lineage lacks something");
      whole = whole.union(lineage);
    }
    checkEquals(WRITERS, lineages.size(), "writers");
    if (store.capabilities().versions() == Versions.OPAQUE && !isQueue) { // of the shared only the last is there
      whole = Lineage.of(
          whole.ofStore(store.name()).stream().filter(id -> !id.key().equals(Key.of(shared))).toList());
    }
    check(store.judge(whole).satisfied(), "no pass");
    keys.forEach(mine -> mine.forEach(key -> check(store.shows(key, "v"), "a replica has not got it")));
    if (isQueue) {
      return;
    }
    if (store.capabilities().versions() == Versions.POSITION) {
      check(store.shows(shared, store.look(shared, store.primary())), "replicas differ");
    } else { // which of writes that met is the last one, replicas may come to agree on a moment later
      store.until(() -> store.shows(shared, store.look(shared, store.primary())), "the replicas agree");
    }
  }

  /** Threads of one request write at once, and nothing is lost of its lineage (SCOPE-2, LIN-29). */
  @Case
  default void parallelConnectionsOfOneScope() {
    StoreUnderTest store = store();
    List<List<String>> keys = keys();
    Lineage lineage;
    try (LineageScope opened = Antipode.scope()) {
      List<Runnable> carried = IntStream.range(0, WRITERS)
          .mapToObj(number -> Antipode.carry((Runnable) () -> keys.get(number).forEach(key -> store.write(key, "v"))))
          .toList();
      inThreads(number -> carried.get(number).run());
      check(opened.pending().isEmpty(), "a write stays pending");
      check(opened.gaps().isEmpty(), "something is missing: " + opened.gaps());
      lineage = opened.lineage();
    }
    check(lineage.isComplete(), "it is incomplete");
    check(store.judge(lineage).satisfied(), "no pass");
    keys.forEach(mine -> mine.forEach(key -> check(store.shows(key, "v"), "a replica has not got it")));
  }

  /** What leaves before the commit is marked; the position is taken after it (SCOPE-14, SCOPE-18, SHIM-11). */
  @Case
  default void openTransaction() {
    StoreUnderTest store = store();
    String key = store.newKey();
    Lineage lineage;
    try (LineageScope opened = Antipode.scope()) {
      store.transaction(transaction -> {
        transaction.write(key, "v");
        checkEquals(Set.of(store.name()), leaving().incomplete(), "what is marked");
        Antipode.configure(Settings.defaults().onPending(OnPending.RAISE));
        Checks.thrown(Antipode::serialize, PendingWriteException.class);
        Antipode.configure(Settings.defaults().onPending(OnPending.MARK));
      });
      check(opened.pending().isEmpty(), "it stays pending");
      check(leaving().isComplete(), "it stays marked");
      lineage = opened.lineage();
    }
    check(!lineage.ofStore(store.name()).isEmpty(), "the write left nothing in the lineage");
    check(store.judge(lineage).satisfied(), "no pass");
    check(store.shows(key, "v"), "a replica has not got it");
  }

  /** A transaction that only read is not pending, and leaves nothing (SCOPE-15). */
  @Case
  default void transactionOnlyReadSoFar() {
    StoreUnderTest store = store();
    String key = store.newKey();
    store.written(key, "v");
    try (LineageScope opened = Antipode.scope()) {
      Antipode.configure(Settings.defaults().onPending(OnPending.RAISE));
      store.transaction(transaction -> {
        transaction.read(key);
        check(leaving().isComplete(), "it is marked");
      });
      check(leaving().isComplete(), "it stays marked");
      check(opened.lineage().ofStore(store.name()).isEmpty(), "a read left something");
    }
  }

  /** An aborted transaction leaves nothing (SCOPE-17, SHIM-11). */
  @Case
  default void rolledBackTransaction() {
    StoreUnderTest store = store();
    String key = store.newKey();

    /** What the application throws in the middle. */
    class Abort extends RuntimeException {
      private static final long serialVersionUID = 1L;
    }

    try (LineageScope opened = Antipode.scope()) {
      Checks.thrown(
          () -> store.transaction(transaction -> {
            transaction.write(key, "v");
            throw new Abort();
          }),
          Abort.class);
      check(opened.pending().isEmpty(), "it stays pending");
      check(!opened.lineage().hasContent(), "it left something");
      check(opened.lineage().isComplete(), "it stays marked");
    }
    check(store.look(key, store.primary()) == null, "it was not rolled back");
  }

  /** A write whose answer never came stays pending: what leaves is marked for the scope's life (SCOPE-17). */
  @Case
  default void unknownOutcome() {
    StoreUnderTest store = store();
    try (LineageScope opened = Antipode.scope()) {
      Checks.thrown(() -> store.writeWithUnknownOutcome(store.newKey(), "v"), RuntimeException.class);
      check(opened.pending().size() == 1 && opened.pending().get(0).isUnknown(), "its outcome is not unknown");
      checkEquals(Set.of(store.name()), opened.lineage().incomplete(), "what is marked");
      checkEquals(Set.of(store.name()), leaving().incomplete(), "what leaves marked");
      store.until(this::writes, "the store is usable again");
      checkEquals(Set.of(store.name()), opened.lineage().incomplete(), "what is marked afterwards");
    }
  }

  private boolean writes() {
    try {
      store().write(store().newKey(), "v");
      return true;
    } catch (RuntimeException notYet) {
      return false;
    }
  }

  /** A write that the server refused did not happen, and is not pending (SCOPE-14). */
  @Case
  default void refusedWrite() {
    StoreUnderTest store = store();
    try (LineageScope opened = Antipode.scope()) {
      Checks.thrown(() -> store.writeRefused(store.newKey()), RuntimeException.class);
      check(opened.pending().isEmpty(), "it stays pending");
      check(opened.lineage().isComplete(), "it is marked");
    }
  }

  /** A position that the store has not reached never passes, and the next write drops it (LIN-28). */
  @Case(only = Versions.POSITION)
  default void implausiblePosition() {
    StoreUnderTest store = store();
    Ordered mine = (Ordered) store.written().ofStore(store.name()).get(0).version();
    WriteId forged = WriteId.position(store.name(), mine.epoch(), -1L);
    check(!store.judge(Lineage.of(forged), store.brief()).satisfied(), "a forged position passes");
    String key = store.newKey();
    try (LineageScope opened = Antipode.messageScope(Lineage.of(forged).serialize())) {
      store.write(key, "v");
      check(!opened.lineage().ofStore(store.name()).contains(forged), "the forged position stays");
      checkEquals(Set.of(store.name()), opened.lineage().incomplete(), "what is marked");
      checkEquals(
          List.of("implausible"), opened.gaps().stream().map(gap -> gap.reason()).toList(), "the gaps");
      check(store.judge(opened.lineage()).satisfied(), "no pass");
    }
    check(store.shows(key, "v"), "a replica has not got it");
  }

  /** A version that no writer gave never passes, at an object that is there or one that is not. */
  @Case
  default void implausibleVersion() {
    StoreUnderTest store = store();
    Lineage mine = store.written();
    check(store.judge(mine).satisfied(), "the write does not pass");
    for (WriteId id : mine.ofStore(store.name())) {
      if (id.isPosition()) {
        continue;
      }
      if (id.version() instanceof Ordered version) {
        fails(new WriteId(id.store(), id.key(), new Ordered(version.epoch(), -1L)));
      } else {
        fails(new WriteId(id.store(), id.key(), new Opaque("kit-unheard-of")));
      }
      if (!store.capabilities().tap()) { // a message is known by its mark alone
        fails(new WriteId(id.store(), Key.of(store.newKey()), id.version()));
      }
    }
    fails(WriteId.position(store.name(), "kit-unheard-of", 1));
  }

  private void fails(WriteId forged) {
    check(!store().judge(Lineage.of(forged), store().brief()).satisfied(), "a forged version passes");
  }

  /** Who comes with what cannot be read writes all the same, and stays incomplete (LIN-17). */
  @Case
  default void malformedLineage() {
    StoreUnderTest store = store();
    for (String text : List.of("1~" + store.name(), "2~some.thing.new.1", "1~" + "x".repeat(5000))) {
      try (LineageScope opened = Antipode.messageScope(text)) {
        store.write(store.newKey(), "v");
        check(!opened.lineage().isComplete(), "it looks complete");
        BarrierResult result = store.judge(opened.lineage());
        check(result.satisfied(), "no pass");
        check(!result.complete(), "the barrier is complete");
      }
    }
  }

  /**
   * Without a right that Antipode needs: an error at wrapping, or an incomplete lineage and a log line, with the grant
   * (SHIM-3, EPOCH-5, EPOCH-26).
   */
  @Case
  default void missingRights() {
    StoreUnderTest store = store();
    String key = store.newKey();
    String cure = store.rightsCure();
    AtomicReference<String> told = new AtomicReference<>();
    try (CapturedLogs logs = new CapturedLogs(); LineageScope opened = Antipode.scope()) {
      try {
        store.writeWithoutRights(key, "v");
        checkEquals("v", store.look(key, store.primary()), "the write itself is allowed");
        store.until(() -> logs.text().contains(cure), "a log line holds the grant");
        told.set(logs.text());
        Lineage lineage = opened.lineage();
        check(
            !lineage.ofStore(store.name()).isEmpty() || lineage.incomplete().equals(Set.of(store.name())),
            "a write without a position looks like none");
      } catch (UnfitStoreException unfit) {
        told.set(unfit.getMessage());
      }
    }
    check(!cure.isEmpty() && told.get().contains(cure), "the grant is not told: " + told.get());
  }

  /** Where versions lie the shim refuses to wrap, and says what to change (SHIM-3, EPOCH-7). */
  @Case
  default void unfitTopology() {
    StoreUnderTest store = store();
    String told = Checks.thrown(store::wrapUnfit, UnfitStoreException.class).getMessage();
    check(!store.unfitCure().isEmpty() && told.contains(store.unfitCure()), "the cure is not told: " + told);
  }

  private static Lineage leaving() {
    return Antipode.deserialize(Antipode.serialize());
  }

  private List<List<String>> keys() {
    return IntStream.range(0, WRITERS)
        .mapToObj(number -> IntStream.range(0, EACH).mapToObj(each -> store().newKey()).toList())
        .toList();
  }

  private void inThreads(IntConsumer work) {
    ConcurrentLinkedQueue<Throwable> errors = new ConcurrentLinkedQueue<>();
    List<Thread> threads = new ArrayList<>();
    for (int number = 0; number < WRITERS; number++) {
      int mine = number;
      Thread thread = new Thread(() -> {
        try {
          work.accept(mine);
        } catch (Throwable error) {
          errors.add(error);
        }
      });
      thread.setDaemon(true);
      thread.start();
      threads.add(thread);
    }
    for (Thread thread : threads) {
      try {
        thread.join(store().patience().toMillis());
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
      }
      check(!thread.isAlive(), "a writer hangs");
    }
    check(errors.isEmpty(), "a writer failed: " + errors);
  }
}
