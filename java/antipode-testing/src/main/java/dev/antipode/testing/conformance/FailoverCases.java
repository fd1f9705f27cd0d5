package dev.antipode.testing.conformance;

import static dev.antipode.testing.conformance.Checks.check;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.Settings;
import dev.antipode.Verdict;
import dev.antipode.shim.Capabilities.Marks;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.testing.StoreUnderTest;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;

/** Cases about servers that are promoted, restarted and re-pointed (chapter EPOCH, BAR-33). */
public interface FailoverCases extends ConformanceCases {
  /** A write: its key, and the lineage that it left. */
  record KeptWrite(String key, Lineage lineage) {}

  /** After a promotion without loss the earlier writes are visible, and new ones too. */
  @Case(spoils = true)
  default void promotion() {
    StoreUnderTest store = store();
    KeptWrite kept = kept();
    store.promote(store.near(), null);
    check(store.judge(kept.lineage).satisfied(), "what arrived does not pass");
    check(store.shows(kept.key, "v"), "a replica has lost it");
    String key = store.newKey("new");
    Lineage written = store.written(key, "v");
    check(store.judge(written.union(kept.lineage)).satisfied(), "a new write does not pass");
    check(store.shows(key, "v"), "a replica has not got it");
  }

  /** What arrived before is visible, what was lost never is, also when the new history has grown past it. */
  @Case(spoils = true)
  default void promotionWithLostWrites() {
    StoreUnderTest store = store();
    KeptWrite kept = kept();
    Lineage lost = lose();
    check(!store.judge(lost, store.brief()).satisfied(), "a lost write passes");
    check(store.judge(kept.lineage).satisfied(), "what arrived does not pass");
    Lineage last = Lineage.EMPTY;
    for (int number = 0; number < 20; number++) {
      last = store.written(store.newKey("new"), Integer.toString(number));
    }
    check(store.judge(last).satisfied(), "a new write does not pass");
    never(lost);
    check(store.judge(kept.lineage).satisfied(), "what arrived does not pass any more");
    check(store.shows(kept.key, "v"), "a replica has lost it");
  }

  /** A second promotion with no write between: the history in the middle is nearly empty. */
  @Case(spoils = true)
  default void secondPromotion() {
    StoreUnderTest store = store();
    String far = store.far();
    KeptWrite kept = kept();
    Lineage lost = lose();
    check(store.judge(kept.lineage).satisfied(), "what arrived does not pass");
    store.promote(far, null);
    check(store.judge(kept.lineage).satisfied(), "what arrived does not pass after the second");
    check(store.shows(kept.key, "v"), "a replica has lost it");
    check(store.judge(store.written(store.newKey("new"), "v")).satisfied(), "a new write does not pass");
    never(lost);
  }

  /** Barriers that wait while a replica is promoted end as late ones do: no false pass, no hang. */
  @Case(spoils = true)
  default void parkedAcrossAPromotion() {
    StoreUnderTest store = store();
    KeptWrite kept = kept();
    Duration timeout = Duration.ofSeconds(3);
    String lostKey = store.newKey("lost");
    AtomicReference<ParkedBarrier> forLost = new AtomicReference<>();
    AtomicReference<ParkedBarrier> forKept = new AtomicReference<>();
    store.promote(store.near(), () -> {
      Lineage lost = store.written(lostKey, "v");
      forLost.set(ParkedBarrier.judging(store, lost, timeout));
      forKept.set(ParkedBarrier.judging(store, kept.lineage, timeout));
      store.until(() -> store.registered().parked() > 0 || forLost.get().isDone(), "the barrier waits");
    });
    forKept.get().result();
    check(!forLost.get().result().satisfied(), "a lost write passes");
    check(store.look(lostKey, store.near()) == null, "the write is not lost");
    check(store.judge(kept.lineage).satisfied(), "what arrived does not pass");
    check(store.shows(kept.key, "v"), "a replica has lost it");
  }

  /** A replica that starts again has lost its proofs, not its data. */
  @Case(spoils = true)
  default void restartedReplica() {
    StoreUnderTest store = store();
    Antipode.configure(Settings.defaults().freePathTtl(Duration.ofSeconds(60)));
    KeptWrite kept = kept();
    store.restart(store.near());
    store.until(
        () -> store.judge(kept.lineage, Duration.ofSeconds(1)).complete(), "what was visible is so again");
    check(store.shows(kept.key, "v"), "a replica has lost it");
    String key = store.newKey("after");
    Lineage after = store.written(key, "v").union(kept.lineage);
    store.until(() -> store.judge(after, Duration.ofSeconds(1)).complete(), "new writes pass");
    check(store.shows(key, "v"), "a replica has not got it");
  }

  /** A primary that starts again goes on, under a new epoch or the old one. */
  @Case(spoils = true)
  default void restartedPrimary() {
    StoreUnderTest store = store();
    KeptWrite kept = kept();
    store.restart(store.primary());
    store.until(
        () -> store.judge(kept.lineage, Duration.ofSeconds(1)).satisfied(), "what was visible stays so");
    check(store.shows(kept.key, "v"), "a replica has lost it");
    String key = store.newKey("after");
    check(store.judge(store.written(key, "v").union(kept.lineage)).satisfied(), "a new write does not pass");
    check(store.shows(key, "v"), "a replica has not got it");
  }

  /** A replica that follows another replica is judged by what it has got, not by what that one has. */
  @Case(spoils = true)
  default void repointedReplica() {
    StoreUnderTest store = store();
    KeptWrite kept = kept();
    store.repoint(store.far(), store.near());
    check(store.judge(kept.lineage).satisfied(), "what arrived does not pass");
    String key = store.newKey("after");
    check(store.judge(store.written(key, "v")).satisfied(), "a new write does not pass");
    check(store.shows(key, "v"), "a replica has not got it");
    store.partition(store.far());
    String lateKey = store.newKey("late");
    Lineage late = store.written(lateKey, "v");
    check(!store.judge(late, store.brief()).satisfied(), "a pass without the write");
    store.heal(store.far());
    check(store.judge(late.union(kept.lineage)).satisfied(), "no pass");
    check(store.shows(lateKey, "v"), "a replica has not got it");
    check(store.shows(kept.key, "v"), "a replica has lost it");
  }

  /** A write that is everywhere, and proved beyond its epoch. */
  private KeptWrite kept() {
    StoreUnderTest store = store();
    String key = store.newKey("kept");
    Lineage lineage = store.written(key, "v");
    check(store.judge(lineage).satisfied(), "the first write does not pass");
    store.waitMarked(lineage);
    check(store.judge(store.written()).satisfied(), "what comes behind the mark does not pass");
    return new KeptWrite(key, lineage);
  }

  /** Promotes the near replica, and loses a write. */
  private Lineage lose() {
    StoreUnderTest store = store();
    String key = store.newKey("lost");
    AtomicReference<Lineage> lost = new AtomicReference<>();
    store.promote(store.near(), () -> lost.set(store.written(key, "v")));
    Checks.checkEquals(store.near(), store.primary(), "the primary");
    check(store.look(key, store.near()) == null, "the write is not lost");
    return lost.get();
  }

  /** A lost write does not pass; a store that knows where its epochs end says so, and does not let wait for it. */
  private void never(Lineage lost) {
    StoreUnderTest store = store();
    check(!store.judge(lost, store.brief()).satisfied(), "a lost write passes");
    if (store.capabilities().versions() == Versions.POSITION && store.capabilities().marks() != Marks.NONE) {
      store.until(
          () -> store.verdict(lost, Duration.ofMillis(500)) == Verdict.UNPROVEN, "a lost write is called unproven");
    }
  }
}
