package dev.antipode.internal.engine;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.internal.engine.EngineTest.LogShim;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** A server that has the write up to {@code applied}, and can lose what it had: pointed at another primary, say. */
final class Replica extends Fake {
  volatile long applied;
  volatile String instance;
  volatile Server server;
  final List<Long> askedAt = new CopyOnWriteArrayList<>();
  final AtomicInteger shown = new AtomicInteger();
  private final boolean hasPositions;
  private final long slow;

  Replica(String name, long applied, boolean hasPositions, Duration slow) {
    super(name, null);
    this.applied = applied;
    this.instance = "i-" + name;
    this.hasPositions = hasPositions;
    this.slow = slow.toMillis();
    answer = this::judge;
  }

  Replica(String name, long applied) {
    this(name, applied, true, Duration.ZERO);
  }

  /** Return what it answers by itself; it is slow behind the look. */
  List<Visibility> judge(List<WriteId> ids, Server asked) throws InterruptedException {
    server = asked;
    askedAt.add(Ticks.now());
    long reached = applied;
    String now = instance;
    Thread.sleep(slow);
    if (hasPositions) {
      server.applied(now, "e1", Map.of("e1", reached));
    }
    if (reached < 5) {
      return Collections.nCopies(ids.size(), Visibility.notYet("behind"));
    }
    shown.incrementAndGet();
    return Collections.nCopies(ids.size(), Visibility.VISIBLE);
  }

  /** Blocks until it was asked so often at least. */
  void untilAsked(int times) {
    EngineTest.until(() -> askedAt.size() >= times);
  }

  /** Registers servers of one store. */
  static void register(boolean hasPositions, Replica... replicas) {
    FakeShim.store(hasPositions ? LogShim::new : FakeShim::new, StoreOptions.named("log").replicas(List.of(replicas)));
  }

  /** Sets that servers are asked often, with this free path. */
  static void configure(Duration freePathTtl) {
    Antipode.configure(Settings.defaults().poll(Duration.ofMillis(5)).freePathTtl(freePathTtl));
  }

  /** Return the result, to come, of a barrier in a thread of its own. */
  static CompletableFuture<BarrierResult> waiting(BarrierOptions options) {
    CompletableFuture<BarrierResult> result = new CompletableFuture<>();
    EngineTest.started(() -> {
      try {
        result.complete(Antipode.barrier(options));
      } catch (Throwable error) {
        result.completeExceptionally(error);
      }
    });
    return result.orTimeout(1, TimeUnit.MINUTES);
  }
}
