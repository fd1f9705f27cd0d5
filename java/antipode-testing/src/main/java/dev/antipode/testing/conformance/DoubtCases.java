package dev.antipode.testing.conformance;

import static dev.antipode.testing.conformance.Checks.check;
import static dev.antipode.testing.conformance.Checks.checkEquals;

import dev.antipode.Antipode;
import dev.antipode.BarrierIncompleteException;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.testing.StoreUnderTest;
import java.util.List;
import java.util.Set;

/** Cases about writes that the scope itself does not know, and commits that it does not see (BAR-56, SCOPE-24, SCOPE-25). */
public interface DoubtCases extends ConformanceCases {
  /** A write that is not committed shows in its scope's own barrier, and in a lineage from then (BAR-56, SCOPE-20). */
  @Case
  default void barrierInATransaction() {
    StoreUnderTest store = store();
    Lineage[] handed = new Lineage[1];
    try (LineageScope opened = Antipode.scope()) {
      store.transaction(transaction -> {
        transaction.write(store.newKey(), "v");
        check(isInDoubt(), "its own barrier knows of no doubt");
        handed[0] = opened.lineage();
      });
      check(!isInDoubt(), "what is committed is in doubt");
    }
    checkEquals(Set.of(store.name()), handed[0].incomplete(), "what is marked");
    check(!store.judge(handed[0]).complete(), "the barrier is complete");
  }

  /** A write whose answer never came shows in its scope's own barrier for good (BAR-56). */
  @Case
  default void barrierBehindAnUnknownOutcome() {
    StoreUnderTest store = store();
    try (LineageScope opened = Antipode.scope()) {
      Checks.thrown(() -> store.writeWithUnknownOutcome(store.newKey(), "v"), RuntimeException.class);
      check(isInDoubt(), "its own barrier knows of no doubt");
      store.until(this::isUsable, "the store is usable again");
      check(isInDoubt(), "the doubt is gone");
      checkEquals(Set.of(store.name()), opened.lineage().incomplete(), "what is marked");
    }
  }

  private boolean isUsable() {
    try {
      return store().judge(store().written(), store().brief()).complete();
    } catch (RuntimeException notYet) {
      return false;
    }
  }

  /** Return whether the current scope's own barrier says that a write of its own is in doubt. */
  private boolean isInDoubt() {
    StoreUnderTest store = store();
    BarrierOptions options = BarrierOptions.defaults().timeout(store.patience()).stores(store.name());
    BarrierResult result = Antipode.barrier(options);
    boolean isDoubtful = result.gaps().stream().anyMatch(gap -> gap.store().equals(store.name()));
    check(isDoubtful != result.complete(), result.explain());
    if (isDoubtful) {
      RuntimeException thrown = Checks.thrown(
          () -> Antipode.barrier(options.requireComplete(true)), BarrierIncompleteException.class);
      check(thrown.getMessage().contains(store.name()), "the store is not named: " + thrown.getMessage());
    }
    return isDoubtful;
  }

  /** What was committed inside what seems an open transaction is recorded, whatever is rolled back (SCOPE-25). */
  @Case
  default void commitInsideATransaction() {
    StoreUnderTest store = store();
    store.commitsInside().forEach((way, write) -> {
      String key = store.newKey();
      store.partition(store.near());
      Lineage lineage;
      try (LineageScope opened = Antipode.scope()) {
        write.accept(key, "v");
        lineage = opened.lineage();
      }
      check(store.capabilities().tap() || "v".equals(store.look(key, store.primary())), way + ": it is not committed");
      check(!lineage.ofStore(store.name()).isEmpty(), way + ": nothing is recorded");
      check(!store.judge(lineage, store.brief()).satisfied(), way + ": a false pass");
      store.heal(store.near());
      check(store.judge(lineage).satisfied(), way + ": no pass");
      check(store.shows(key, "v"), way + ": a replica has not got it");
    });
  }

  /** Each scope that wrote in a shared transaction waits for its commit, whoever began it (SCOPE-24). */
  @Case
  default void transactionOverTwoScopes() {
    StoreUnderTest store = store();
    for (boolean isBegunOutside : new boolean[] {true, false}) {
      List<String> keys = List.of(store.newKey(), store.newKey(), store.newKey());
      LineageScope[] scopes = new LineageScope[2];
      try {
        if (!isBegunOutside) {
          scopes[0] = Antipode.scope();
        }
        store.transaction(transaction -> {
          if (isBegunOutside) {
            transaction.write(keys.get(0), "v");
            scopes[0] = Antipode.scope();
          }
          transaction.write(keys.get(1), "v");
          scopes[1] = Antipode.scope();
          transaction.write(keys.get(2), "v");
          for (LineageScope each : scopes) {
            checkEquals(Set.of(store.name()), each.lineage().incomplete(), "what is marked");
          }
          store.partition(store.near());
        });
        for (LineageScope each : scopes) {
          check(each.pending().isEmpty() && each.lineage().isComplete(), "it stays pending");
          check(!each.lineage().ofStore(store.name()).isEmpty(), "nothing is recorded");
          check(!store.judge(each.lineage(), store.brief()).satisfied(), "a false pass");
        }
        store.heal(store.near());
        for (int each = 0; each < 2; each++) {
          check(store.judge(scopes[each].lineage()).satisfied(), "no pass");
          check(store.shows(keys.get(each + 1), "v"), "a replica has not got it");
        }
      } finally {
        for (int each = 1; each >= 0; each--) {
          if (scopes[each] != null) {
            scopes[each].close();
          }
        }
      }
    }
  }

  /** Who executes what others queued, who have ended, depends on it, too (SCOPE-24). */
  @Case
  default void transactionThatAnotherScopeExecutes() {
    StoreUnderTest store = store();
    String key = store.newKey();
    LineageScope[] scopes = new LineageScope[2];
    try {
      store.transaction(transaction -> {
        scopes[0] = Antipode.scope();
        transaction.write(key, "v");
        scopes[0].close();
        scopes[1] = Antipode.scope();
        check(scopes[1].lineage().isComplete(), "it has nothing to do with it yet");
        store.partition(store.near());
      });
      LineageScope executing = scopes[1];
      check(executing.pending().isEmpty() && executing.lineage().isComplete(), "it stays pending");
      check(!executing.lineage().ofStore(store.name()).isEmpty(), "who executed it depends on nothing");
      check(!store.judge(executing.lineage(), store.brief()).satisfied(), "a false pass");
      checkEquals(Set.of(store.name()), scopes[0].lineage().incomplete(), "what is marked of the scope that has ended");
      store.heal(store.near());
      check(store.judge(executing.lineage()).satisfied(), "no pass");
      check(store.shows(key, "v"), "a replica has not got it");
    } finally {
      if (scopes[1] != null) {
        scopes[1].close();
      }
    }
  }
}
