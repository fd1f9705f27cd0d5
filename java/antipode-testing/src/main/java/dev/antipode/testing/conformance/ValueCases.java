package dev.antipode.testing.conformance;

import static dev.antipode.testing.conformance.Checks.check;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Opaque;
import dev.antipode.Settings;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.testing.StoreUnderTest;
import java.util.ArrayList;
import java.util.List;

/** Cases about objects and their versions: writing, overwriting, deleting, creating anew (SHIM-6 to SHIM-10, BAR-11). */
public interface ValueCases extends ConformanceCases {
  /** A write is recorded, and everywhere in the region once the barrier has passed. */
  @Case
  default void write() {
    StoreUnderTest store = store();
    String key = store.newKey();
    Lineage lineage = store.written(key, "v");
    check(lineage.isComplete(), "the shim could not say which version the write has");
    check(!lineage.ofStore(store.name()).isEmpty(), "the write left nothing in the lineage");
    check(store.judge(lineage).complete(), "the barrier is not complete");
    check(store.shows(key, "v"), "a replica has not got it");
  }

  /** The versions that writes get are of the kind that the shim declares (SHIM-18, LIN-5). */
  @Case
  default void declaredVersions() {
    StoreUnderTest store = store();
    Versions declared = store.capabilities().versions();
    for (WriteId id : store.written().ofStore(store.name())) {
      check((id.version() instanceof Opaque) == (declared == Versions.OPAQUE), "another kind of version: " + declared);
      check(id.isPosition() == (declared == Versions.POSITION), "objects beside positions: " + declared);
    }
  }

  /** With {@code hash_keys} no key leaves, and writes are waited for all the same (SHIM-21). */
  @Case(only = {Versions.OBJECT, Versions.OPAQUE})
  default void hashedKeys() {
    StoreUnderTest store = store();
    Antipode.configure(Settings.defaults().hashKeys(true));
    String key = store.newKey();
    store.partition(store.near());
    Lineage lineage = store.written(key, "v");
    for (WriteId id : lineage.ofStore(store.name())) {
      check(id.key().isHashed(), "a key is not hashed");
    }
    check(!store.judge(lineage, store.brief()).satisfied(), "a pass without the write");
    store.heal(store.near());
    check(store.judge(lineage).satisfied(), "no pass");
    check(store.shows(key, "v"), "a replica has not got it");
  }

  /** The second version is waited for, and is none that was there before. */
  @Case(queues = false)
  default void overwrite() {
    StoreUnderTest store = store();
    String key = store.newKey();
    Lineage first = store.written(key, "1");
    check(store.judge(first).satisfied(), "the first does not pass");
    Lineage second = store.written(key, "2");
    check(!second.isCoveredBy(first), "the second version is the first");
    check(store.judge(second).satisfied(), "the second does not pass");
    check(store.shows(key, "2"), "a replica has not got it");
  }

  /** A replica that has the key with an older version has not got the write (BAR-11). */
  @Case(queues = false)
  default void oldVersion() {
    StoreUnderTest store = store();
    String key = store.newKey();
    check(store.judge(store.written(key, "1")).satisfied(), "the first does not pass");
    store.partition(store.near());
    Lineage second = store.written(key, "2");
    check(!store.judge(second, store.brief()).satisfied(), "an older version passes");
    check(store.shows(key, "1", store.near()), "the partition does not part");
    store.heal(store.near());
    check(store.judge(second).satisfied(), "the second does not pass");
    check(store.shows(key, "2"), "a replica has not got it");
  }

  /** A version that a replica never showed is visible where a newer one of the key is (BAR-11). */
  @Case(only = {Versions.POSITION, Versions.OBJECT}, queues = false)
  default void superseded() {
    StoreUnderTest store = store();
    String key = store.newKey();
    store.partition(store.near());
    Lineage first = store.written(key, "1");
    Lineage second = store.written(key, "2");
    check(!store.judge(first, store.brief()).satisfied(), "a pass without the write");
    store.heal(store.near());
    check(store.judge(first.union(second)).satisfied(), "no pass");
    check(store.shows(key, "2"), "a replica has not got it");
    check(store.judge(first).satisfied(), "the superseded version does not pass");
  }

  /** Later writes take the place of earlier ones, which are waited for all the same (LIN-8, LIN-11). */
  @Case(only = Versions.POSITION)
  default void absorbedByAPosition() {
    StoreUnderTest store = store();
    List<String> keys = new ArrayList<>();
    Lineage first;
    Lineage lineage;
    try (LineageScope opened = Antipode.scope()) {
      keys.add(store.newKey());
      store.write(keys.get(0), "v");
      first = opened.lineage();
      for (int number = 0; number < 9; number++) {
        keys.add(store.newKey());
        store.write(keys.get(keys.size() - 1), "v");
      }
      lineage = opened.lineage();
    }
    check(lineage.size() == 1, "the lineage grows with the writes");
    check(first.isCoveredBy(lineage), "the first write is lost");
    check(lineage.serialize().length() <= first.serialize().length() + 5, "the text grows with the writes");
    check(store.judge(lineage).satisfied(), "no pass");
    for (String key : keys) {
      check(store.shows(key, "v"), "a replica has not got it");
    }
  }

  /** A deletion is waited for where the store keeps a trace of it, and else unproven (SHIM-16). */
  @Case(queues = false)
  default void delete() {
    StoreUnderTest store = store();
    String key = store.newKey();
    check(store.judge(store.written(key, "v")).satisfied(), "the write does not pass");
    store.partition(store.near());
    Lineage deleted = deleted(key);
    check(!store.judge(deleted, store.brief()).satisfied(), "a pass without the deletion");
    check(store.shows(key, "v", store.near()), "the partition does not part");
    store.heal(store.near());
    if (store.capabilities().tombstones()) {
      check(store.judge(deleted).satisfied(), "the deletion does not pass");
      check(store.shows(key, null), "a replica still has it");
    } else {
      check(
          !deleted.incomplete().isEmpty() || store.verdict(deleted, store.brief()) == Verdict.UNPROVEN,
          "a deletion without a trace is neither incomplete nor unproven");
    }
  }

  /** A version that was deleted since is visible where the deletion is (BAR-11). */
  @Case(only = {Versions.POSITION, Versions.OBJECT}, queues = false)
  default void deletedCountsAsSeen() {
    StoreUnderTest store = store();
    String key = store.newKey();
    store.partition(store.near());
    Lineage written = store.written(key, "v");
    Lineage deleted = deleted(key);
    check(!store.judge(written, store.brief()).satisfied(), "a pass without the write");
    store.heal(store.near());
    if (store.capabilities().tombstones()) {
      check(store.judge(written.union(deleted)).satisfied(), "no pass");
      check(store.judge(written).satisfied(), "what was deleted does not pass");
      check(store.shows(key, null), "a replica still has it");
    } else { // its being gone may as well be its not being there yet
      check(!store.judge(written, store.brief()).satisfied(), "what is not there passes");
    }
  }

  /** Versions do not repeat when an object is deleted and created anew (SHIM-10). */
  @Case(queues = false)
  default void recreate() {
    StoreUnderTest store = store();
    String key = store.newKey();
    Lineage first = store.written(key, "1").union(store.written(key, "2"));
    check(store.judge(store.written(key, "3")).satisfied(), "the third does not pass");
    Lineage deleted = deleted(key);
    if (store.capabilities().tombstones()) {
      check(store.judge(deleted).satisfied(), "the deletion does not pass");
    } else {
      store.until(() -> store.shows(key, null), "the deletion arrives");
    }
    store.partition(store.near());
    Lineage again = store.written(key, "1");
    check(!again.isCoveredBy(first), "a version of the deleted object repeats");
    check(!again.isCoveredBy(deleted), "the version of the deletion repeats");
    check(!store.judge(again, store.brief()).satisfied(), "a pass without the write");
    store.heal(store.near());
    check(store.judge(again).satisfied(), "no pass");
    check(store.shows(key, "1"), "a replica has not got it");
    if (store.capabilities().versions() != Versions.OPAQUE) {
      check(store.judge(first).satisfied(), "what was superseded does not pass");
    }
  }

  /** An operation that changed nothing is neither pending nor waited for in vain. */
  @Case(queues = false)
  default void noOpWrite() {
    StoreUnderTest store = store();
    Lineage lineage;
    try (LineageScope opened = Antipode.scope()) {
      store.writeNothing();
      check(opened.pending().isEmpty(), "it stays pending");
      lineage = opened.lineage();
    }
    check(lineage.isComplete(), "it is incomplete");
    check(store.judge(lineage).satisfied(), "no pass");
  }

  private Lineage deleted(String key) {
    try (LineageScope opened = Antipode.scope()) {
      store().delete(key);
      return opened.lineage();
    }
  }
}
