package dev.antipode.internal.engine;

import dev.antipode.Antipode;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Ordered;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.internal.diagnostics.dryrun.Counts;
import dev.antipode.internal.diagnostics.dryrun.FollowedRead;
import dev.antipode.internal.diagnostics.dryrun.Records;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.lab.CallFaults;
import dev.antipode.observer.ReadReply;
import dev.antipode.shim.Visibility;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** A process that can start no thread of Antipode's for a while, as {@link OwnFaultTest} starts it (BAR-61). */
final class ThreadlessProcess {
  private static final Lineage ONE = Lineage.of(new WriteId("posts", "k", new Ordered("", 1)));
  private static final Fake SERVER = new Fake("p", FakeShim.always(Visibility.VISIBLE));

  private ThreadlessProcess() {}

  /** Arguments: what it does, and the folder of its records. */
  public static void main(String[] words) throws Exception {
    CallFaults.play(() -> {
      switch (words[0]) {
        case "read" -> follow(words[1], () -> read());
        case "barrier" -> follow(words[1], () -> barrier());
        default -> waitForServer();
      }
    });
  }

  /** Dry-run: something is looked at, and followed. */
  private static void follow(String records, Runnable work) throws Exception {
    Antipode.configure(Settings.defaults().mode(Mode.DRY_RUN).records(records).sample(1.0));
    FakeShim.store("posts", SERVER);
    lack(work::run);
    check(FollowRegistry.count() == 0, "nothing is followed without an end");
    work.run();
    EngineTest.until(() -> FollowRegistry.count() == 0);
    check(SERVER.asked.get() > 0, "it is followed again");
    check(Records.flush(TimeUnit.MINUTES.toMillis(1)), "the records are written");
  }

  private static void read() {
    RegionStore store = EngineTest.store("posts");
    try (LineageScope scope = Antipode.scope(ONE)) {
      FollowedRead read = FollowedRead.of(store, null);
      check(read != null && !scope.isClosed(), "it is followed");
      read.returned(new ReadReply(store.servers(false).get(0), List.of()), null);
    }
    check(Counts.total("reads") > 0, "it is counted");
  }

  private static void barrier() {
    check(EngineTest.wait(ONE, EngineTest.LONG).satisfied(), "dry-run goes on");
  }

  /** Whoever waits for a server that nobody has named is told, and later ones wait for it. */
  private static void waitForServer() throws Exception {
    RegionStore store = FakeShim.store("posts");
    CountDownLatch asked = new CountDownLatch(1);
    CountDownLatch named = new CountDownLatch(1);
    Discovery expected =
        store.expectServer(StoreOptions.named("posts"), "a client", ThreadlessProcess.class, client -> {
          asked.countDown();
          try {
            named.await();
          } catch (InterruptedException error) {
            throw new IllegalStateException(error);
          }
          return List.of();
        });
    expected.refresh();
    asked.await(); // so that its thread is there, and that of deadlines is not
    lack(() -> check(future().store("posts").kind() == UnprovenKind.OWN_FAULT, "it is told"));
    named.countDown();
    expected.found(List.of(SERVER));
    check(future().complete(), "it passes");
  }

  private static BarrierResult future() {
    try {
      return Antipode.barrierAsync(EngineTest.proceeding(ONE, EngineTest.LONG)).get(1, TimeUnit.MINUTES);
    } catch (Exception error) {
      throw new AssertionError("no result", error);
    }
  }

  private static void lack(CallFaults.Play work) throws Exception {
    CallFaults.say("arm thread 1 on");
    CallFaults.say("count");
    work.run();
    CallFaults.say("spare");
    check(CallFaults.say("disarm") > 0, "a thread was wanted");
  }

  private static void check(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError("in vain: " + what);
    }
  }
}
