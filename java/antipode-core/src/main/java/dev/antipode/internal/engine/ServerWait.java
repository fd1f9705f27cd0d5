package dev.antipode.internal.engine;

import dev.antipode.Lineage;
import dev.antipode.ServerResult;
import dev.antipode.Verdict;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Server;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** Waiting at one server for one lineage, nothing enforced: what wait on read and the failover fuzzer use. */
public final class ServerWait {
  private ServerWait() {}

  /** Blocks until the server has shown every write of the lineage to its store; the verdict. */
  public static Verdict at(Server server, Lineage lineage, Duration timeout) {
    return judged(server, lineage, timeout).verdict();
  }

  /** Blocks likewise; returns what the server answered, as a barrier tells it. */
  public static ServerResult judged(Server server, Lineage lineage, Duration timeout) {
    ServerEngine engine = (ServerEngine) server;
    StoreRequest asked = new StoreRequest(engine.store(), lineage.ofStore(engine.store().name()), List.of(engine));
    return Judgement.judgeServer(engine, ServerWaiting.block(List.of(asked), Planner.nanos(timeout)).needs, false);
  }

  /** The same without a thread: completes with the verdict on one of the engine's, where nothing may block. */
  public static CompletableFuture<Verdict> later(Server server, Lineage lineage, Duration timeout) {
    ServerEngine engine = (ServerEngine) server;
    StoreRequest asked = new StoreRequest(engine.store(), lineage.ofStore(engine.store().name()), List.of(engine));
    CompletableFuture<Void> over = new CompletableFuture<>();
    WaitGroup group = new WaitGroup(Planner.nanos(timeout), () -> over.complete(null));
    Map<RegisteredStore, Integer> places =
        ServerWaiting.park(group, List.of(asked)) ? ServerWaiting.takePlaces(group, true) : null;
    if (places == null) { // settled already, or overloaded
      ServerWaiting.giveUp(group);
      return CompletableFuture.completedFuture(Judgement.judgeServer(engine, group.needs, false).verdict());
    }
    Future<?> alarm =
        EngineThreads.TIMER.schedule(() -> over.complete(null), ServerWaiting.patience(group), TimeUnit.NANOSECONDS);
    return over.thenApplyAsync(
        ended -> {
          alarm.cancel(false);
          ServerWaiting.giveBack(places, true);
          ServerWaiting.giveUp(group);
          return Judgement.judgeServer(engine, group.needs, false).verdict();
        },
        EngineThreads.FUTURES);
  }
}
