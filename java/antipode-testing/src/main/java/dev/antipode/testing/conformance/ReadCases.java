package dev.antipode.testing.conformance;

import static dev.antipode.testing.conformance.Checks.check;
import static dev.antipode.testing.conformance.Checks.checkEquals;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.BarrierUnprovenException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Policy;
import dev.antipode.Reading;
import dev.antipode.Settings;
import dev.antipode.WriteId;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.testing.StoreUnderTest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** Cases about what was read, and the lineages that rest beside it (SHIM-9, SHIM-12 to SHIM-14, SHIM-20). */
public interface ReadCases extends ConformanceCases {
  /** A read gives the native value and adds nothing to the scope, unless asked to (SHIM-12). */
  @Case(queues = false)
  default void aReadAddsNothing() {
    StoreUnderTest store = store();
    String key = store.newKey();
    check(store.judge(store.written(key, "v")).satisfied(), "the write does not pass");
    try (LineageScope opened = Antipode.scope()) {
      checkEquals("v", store.read(key, store.near()), "the value read");
      check(!opened.lineage().hasContent(), "a read adds to the scope");
      try (Reading seen = Antipode.reading()) {
        store.read(key, store.near());
        check(!seen.lineage().isEmpty(), "nothing was collected");
      }
      check(!opened.lineage().hasContent(), "reading() adds to the scope");
      try (Reading seen = Antipode.reading().merging()) {
        store.read(key, store.near());
        check(!seen.lineage().isEmpty(), "nothing was collected");
      }
      check(!opened.lineage().ofStore(store.name()).isEmpty(), "reading().merging() adds nothing");
    }
  }

  /** What reading collects makes a barrier elsewhere wait for the very value that was read (SHIM-13). */
  @Case(queues = false)
  default void readingCoversTheValueRead() {
    StoreUnderTest store = store();
    String key = store.newKey();
    store.partition(store.far());
    store.written(key, "v");
    store.until(() -> store.shows(key, "v", store.near()), "the write reaches the near replica");
    Lineage seen = seen(key, "v", store.near());
    check(!seen.ofStore(store.name()).isEmpty(), "nothing covers the value");
    check(!store.judge(seen, store.brief()).satisfied(), "a pass without the value");
    store.heal(store.far());
    check(store.judge(seen).satisfied(), "no pass");
    check(store.shows(key, "v"), "a replica has not got it");
  }

  /** A read inside {@code reading(after)} waits for that lineage at its own server, or throws (BAR-51). */
  @Case(queues = false)
  default void readingAfter() {
    StoreUnderTest store = store();
    String key = store.newKey();
    check(store.judge(store.written(key, "1")).satisfied(), "the write does not pass");
    store.partition(store.near());
    Lineage second = store.written(key, "2");
    Antipode.configure(Settings.defaults().timeout(store.brief()));
    try (Reading seen = Antipode.reading(second)) {
      Checks.thrown(
          () -> store.read(key, store.near()), BarrierTimeoutException.class, BarrierUnprovenException.class);
      check(seen.after().isPresent(), "reading(after) has a lineage");
    }
    Antipode.configure(Settings.defaults().timeout(store.patience()));
    store.heal(store.near());
    try (Reading seen = Antipode.reading(second)) {
      checkEquals("2", store.read(key, store.near()), "the value read");
      check(seen.after().isPresent(), "reading(after) has a lineage");
    }
  }

  /** A writes here; B reads it and writes to another store; who reads that in C waits for what A wrote. */
  @Case(queues = false)
  default void threeRegionsTwoStores() {
    StoreUnderTest store = store();
    String key = store.newKey();
    MemoryStore index = MemoryStore.named("kit-index").regions("a", "b", "c");
    MemoryClient writerB = index.client("a");
    MemoryClient readerC = index.client("c");
    store.partition(store.far());
    store.written(key, "v");
    store.until(() -> store.shows(key, "v", store.near()), "the write reaches region B");
    try (LineageScope inB = Antipode.scope()) {
      try (Reading seen = Antipode.reading().merging()) {
        checkEquals("v", store.read(key, store.near()), "the value read");
        check(!seen.lineage().isEmpty(), "nothing was collected");
      }
      check(!inB.lineage().isEmpty(), "the read was not merged");
      writerB.set("newest", key);
    }
    try (LineageScope inC = Antipode.scope()) {
      try (Reading seen = Antipode.reading().merging()) {
        checkEquals(key, readerC.get("newest"), "the value read");
        check(!seen.lineage().isEmpty(), "nothing was collected");
      }
      check(!inC.lineage().isEmpty(), "the read was not merged");
      BarrierOptions brief = BarrierOptions.defaults()
          .timeout(store.brief()).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);
      check(!Antipode.barrier(brief).satisfied(), "a pass without what A wrote");
      check(store.look(key, store.far()) == null, "the partition does not part");
      store.heal(store.far());
      check(Antipode.barrier(BarrierOptions.defaults().timeout(store.patience())).satisfied(), "no pass");
      check(store.shows(key, "v"), "a replica has not got it");
    }
  }

  /** Who reads a value depends on what its writer depended on (SHIM-9). */
  @Case(queues = false)
  default void aLineageRestsBesideTheValue() {
    StoreUnderTest store = store();
    if (store.capabilities().rest().isEmpty()) {
      Checks.skip("no lineages rest in this store");
    }
    String key = store.newKey();
    MemoryStore posts = MemoryStore.named("kit-posts").regions("a", "b");
    posts.client("b");
    posts.freeze("b");
    Lineage mine;
    try (LineageScope opened = Antipode.scope()) {
      posts.client("a").set("p", "v");
      store.write(key, "v");
      mine = opened.lineage();
    }
    check(store.judge(mine).satisfied(), "the write does not pass");
    Lineage seen = seen(key, "v", store.far());
    check(!seen.ofStore("kit-posts").isEmpty(), "what the writer depended on is lost");
    BarrierOptions onPosts = BarrierOptions.defaults().lineage(seen).stores("kit-posts").onTimeout(Policy.PROCEED);
    check(!Antipode.barrier(onPosts.timeout(Duration.ofMillis(100))).satisfied(), "a pass without the post");
    posts.heal("b");
    check(Antipode.barrier(onPosts.timeout(store.patience())).satisfied(), "no pass");
  }

  /** Only the first write of a process depends on nothing, where no scope says on what (SCOPE-32). */
  @Case(queues = false)
  default void whatRestsOutsideAnyScope() {
    StoreUnderTest store = store();
    if (store.capabilities().rest().isEmpty()) {
      Checks.skip("no lineages rest in this store");
    }
    String first = store.newKey();
    String second = store.newKey();
    store.write(first, "v");
    store.write(second, "v");
    for (String key : List.of(first, second)) {
      store.until(() -> store.shows(key, "v", store.near()), "the write reaches the near replica");
      Lineage seen = seen(key, "v", store.near());
      check(seen.isComplete() == key.equals(first), key.equals(first) ? "it is incomplete" : "lost, and looks complete");
      check(store.judge(seen).satisfied(), "no pass");
    }
  }

  /** What was written without Antipode reads as it is, with the empty complete lineage beside it (SHIM-14). */
  @Case(queues = false)
  default void dataWithoutLineage() {
    StoreUnderTest store = store();
    String key = store.newKey();
    store.rawWrite(key, "v");
    store.until(() -> store.shows(key, "v"), "the write arrives");
    Lineage seen = seen(key, "v", store.near());
    check(seen.isComplete(), "it is incomplete");
    check(Set.of(store.name()).containsAll(seen.stores()), "another store in the lineage");
    check(store.judge(seen).satisfied(), "no pass");
  }

  /** Such a value is waited for elsewhere like any other: its identifier is its version or position (SHIM-13). */
  @Case(queues = false)
  default void dataWithoutLineageIsCovered() {
    StoreUnderTest store = store();
    String key = store.newKey();
    store.partition(store.far());
    store.rawWrite(key, "v");
    store.until(() -> store.shows(key, "v", store.near()), "the write reaches the near replica");
    Lineage seen = seen(key, "v", store.near());
    check(!store.judge(seen, store.brief()).satisfied(), "a pass without the value");
    store.heal(store.far());
    check(store.judge(seen).satisfied(), "no pass");
    check(store.shows(key, "v"), "a replica has not got it");
  }

  /** Code without Antipode may write between: what was written before it is visible all the same. */
  @Case(only = {Versions.POSITION, Versions.OBJECT}, queues = false)
  default void overwrittenWithoutAntipode() {
    StoreUnderTest store = store();
    String key = store.newKey();
    Lineage lineage = store.written(key, "1");
    store.rawWrite(key, "2");
    store.until(() -> store.shows(key, "2"), "the second write arrives");
    check(store.judge(lineage).satisfied(), "what was overwritten does not pass");
    check(store.judge(seen(key, "2", store.near())).satisfied(), "what was read does not pass");
  }

  /** A write succeeds whatever its scope depends on; what does not fit beside it leaves it incomplete (LIN-17). */
  @Case
  default void oversizedLineage() {
    StoreUnderTest store = store();
    String key = store.newKey();
    List<WriteId> ids = new ArrayList<>();
    for (int number = 0; number < 300; number++) {
      ids.add(new WriteId("elsewhere", "object-" + number, new Ordered("", number)));
    }
    Lineage foreign = Lineage.of(ids);
    Lineage mine;
    try (LineageScope opened = Antipode.scope(foreign)) {
      store.write(key, "v");
      mine = opened.lineage();
    }
    check(!mine.ofStore(store.name()).isEmpty(), "the write left nothing in the lineage");
    check(store.judge(mine).satisfied(), "no pass");
    check(store.shows(key, "v"), "a replica has not got it");
    if (store.capabilities().tap() || store.capabilities().rest().isEmpty()) {
      return;
    }
    Lineage seen = seen(key, "v", store.near());
    check(foreign.isCoveredBy(seen) || !seen.incomplete().isEmpty(), "lost, and looks complete");
  }

  /** Who read a value at one replica never reads an older one at another, after a barrier (SHIM-20). */
  @Case(queues = false)
  default void monotonicReads() {
    StoreUnderTest store = store();
    String key = store.newKey();
    Antipode.configure(Settings.defaults().freePathTtl(Duration.ZERO));
    store.setLag(store.far(), Duration.ofMillis(150));
    for (int number = 1; number < 5; number++) {
      String value = Integer.toString(number);
      Lineage written = store.written(key, value);
      store.until(() -> store.shows(key, value, store.near()), "the write reaches the near replica");
      check(store.judge(seen(key, value, store.near())).satisfied(), "what was read does not pass");
      checkEquals(value, store.look(key, store.far()), "what the far replica has");
      checkEquals(value, store.read(key, store.far()), "what is read there");
      if (store.capabilities().versions() != Versions.OPAQUE) {
        store.write(store.newKey(), "beside");
        check(store.judge(written).satisfied(), "it was visible a moment ago");
      }
    }
  }

  /** Reads a value; what reading it collects. */
  private Lineage seen(String key, String value, String at) {
    try (Reading seen = Antipode.reading()) {
      checkEquals(value, store().read(key, at), "the value read");
      return seen.lineage();
    }
  }
}
