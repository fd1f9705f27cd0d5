package dev.antipode.testing.conformance;

import static dev.antipode.testing.conformance.Checks.check;
import static dev.antipode.testing.conformance.Checks.checkEquals;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Settings;
import dev.antipode.StoreResult;
import dev.antipode.Verdict;
import dev.antipode.internal.engine.RegionStore;
import dev.antipode.internal.engine.ServerEngine;
import dev.antipode.observer.Outcome;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.testing.StoreUnderTest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;

/** Cases about waiting: deadlines, cancellation, crowds, the free path (BAR-28 to BAR-41). */
public interface WaitingCases extends ConformanceCases {
  /** A barrier ends at its deadline, with an error that names the store; a timeout of zero looks (BAR-28, BAR-29). */
  @Case
  default void deadline() {
    StoreUnderTest store = store();
    String key = store.newKey();
    store.partition(store.near());
    Lineage lineage = store.written(key, "v");
    RuntimeException thrown = Checks.thrown(
        () -> Antipode.barrier(BarrierOptions.defaults().lineage(lineage).timeout(store.brief())),
        BarrierTimeoutException.class);
    check(thrown.getMessage().contains(store.name()), "the error does not name the store");
    checkEquals(
        Verdict.TIMED_OUT, ((BarrierTimeoutException) thrown).result().store(store.name()).verdict(), "the verdict");
    checkEquals(Verdict.NOT_YET, store.verdict(lineage, Duration.ZERO), "the verdict of a look");
    store.heal(store.near());
    check(store.judge(lineage).satisfied(), "no pass");
    check(store.shows(key, "v"), "a replica has not got it");
  }

  /** A cancelled barrier gives its place up, and the next one passes (BAR-32). */
  @Case
  default void cancellation() {
    StoreUnderTest store = store();
    store.partition(store.near());
    Lineage lineage = store.written();
    CompletableFuture<BarrierResult> waiting = Antipode.barrierAsync(store.judging(lineage, store.patience()));
    store.until(() -> store.registered().parked() == 1, "the barrier waits");
    check(waiting.cancel(true), "it cannot be cancelled");
    Checks.thrown(waiting::join, CancellationException.class);
    checkEquals(0, store.registered().parked(), "places that are taken");
    store.heal(store.near());
    check(Antipode.barrierAsync(store.judging(lineage, store.patience())).join().satisfied(), "no pass");
  }

  /** A crowd waits with no more questions than one barrier asks, and all of it is released (BAR-38). */
  @Case
  default void thousandsOfWaiters() {
    StoreUnderTest store = store();
    int crowd = 2000;
    Antipode.configure(Settings.defaults().maxTasks(2 * crowd));
    store.partition(store.near());
    List<String> keys = new ArrayList<>();
    List<Lineage> lineages = new ArrayList<>();
    for (int number = 0; number < 20; number++) {
      keys.add(store.newKey());
      lineages.add(store.written(keys.get(number), "v"));
    }
    long before = questions();
    List<CompletableFuture<BarrierResult>> waits = new ArrayList<>();
    for (int number = 0; number < crowd; number++) {
      Lineage lineage = lineages.get(number % lineages.size());
      waits.add(Antipode.barrierAsync(store.judging(lineage, store.patience().multipliedBy(3))));
    }
    store.until(() -> store.registered().parked() == crowd, "all of them wait");
    store.heal(store.near());
    check(waits.stream().allMatch(wait -> wait.join().satisfied()), "not all were released");
    long asked = questions() - before;
    check(asked < crowd, asked + " questions for " + crowd + " waiters");
    for (String key : keys) {
      check(store.shows(key, "v"), "a replica has not got it");
    }
  }

  private long questions() {
    return RegionStore.of(store().registered()).servers(false).stream().mapToLong(ServerEngine::questions).sum();
  }

  /** A shim that declares a push is woken by it: without, the next question would come too late (SHIM-18). */
  @Case
  default void push() {
    StoreUnderTest store = store();
    if (!store.capabilities().push()) {
      Checks.skip("the shim declares no push");
    }
    Antipode.configure(Settings.defaults().poll(store.patience().multipliedBy(10)));
    store.partition(store.near());
    String key = store.newKey();
    ParkedBarrier parked = ParkedBarrier.judging(store, store.written(key, "v"));
    store.until(() -> store.registered().parked() == 1, "the barrier waits");
    store.heal(store.near());
    check(parked.result().satisfied(), "the push does not wake it");
    check(store.shows(key, "v"), "a replica has not got it");
  }

  /** Past the greatest number of waiters a barrier is answered at once (BAR-39). */
  @Case
  default void overload() {
    StoreUnderTest store = store();
    Antipode.configure(Settings.defaults().maxWaiters(1));
    store.partition(store.near());
    Lineage lineage = store.written();
    ParkedBarrier parked = ParkedBarrier.judging(store, lineage);
    store.until(() -> store.registered().parked() == 1, "the barrier waits");
    StoreResult refused = store.judge(lineage).store(store.name());
    checkEquals(Verdict.TIMED_OUT, refused.verdict(), "the verdict");
    check(refused.reason().contains("overloaded"), "the reason is not overload: " + refused.reason());
    check(!parked.isDone(), "the first one does not wait any more");
    store.heal(store.near());
    check(parked.result().satisfied(), "the first one does not pass");
  }

  /** A barrier that repeats what was proved lately asks nobody (BAR-35). */
  @Case(only = Versions.POSITION)
  default void freePath() {
    StoreUnderTest store = store();
    Antipode.configure(Settings.defaults().freePathTtl(Duration.ofSeconds(60)));
    BarrierOptions patient = BarrierOptions.defaults().timeout(store.patience());
    try (LineageScope opened = Antipode.scope()) {
      store.write(store.newKey(), "v");
      check(!opened.lineage().isEmpty(), "the write left nothing in the lineage");
      check(Antipode.barrier(patient).satisfied(), "no pass");
      long before = Outcome.FREE.counted();
      for (int number = 0; number < 10; number++) {
        check(Antipode.barrier(patient).satisfied(), "no pass");
      }
      checkEquals(before + 10, Outcome.FREE.counted(), "free barriers");
    }
  }
}
