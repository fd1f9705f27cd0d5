package dev.antipode.benchmarks;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.testing.Isolated;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** 10,000 parked futures wait for one write: from its arrival until the last of them has completed. */
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Warmup(iterations = 5)
@Measurement(iterations = 15)
@Fork(1)
@State(Scope.Thread)
public class ReleaseBenchmark {
  private static final int CROWD = 10_000;

  private Isolated isolated;
  private MemoryStore store;
  private CompletableFuture<Void> all;

  /** The crowd parks at a replica that is cut off. */
  @Setup(Level.Invocation)
  public void park() {
    isolated = new Isolated();
    store = MemoryStore.named("blog-posts");
    MemoryClient writer = store.client("a");
    store.register("b");
    store.freeze("b");
    Lineage lineage;
    try (LineageScope scope = Antipode.scope()) {
      writer.set("k", "v");
      lineage = scope.lineage();
    }
    BarrierOptions options = BarrierOptions.defaults().lineage(lineage).timeout(Duration.ofSeconds(60));
    List<CompletableFuture<BarrierResult>> futures = new ArrayList<>();
    for (int number = 0; number < CROWD; number++) {
      futures.add(Antipode.barrierAsync(options));
    }
    all = CompletableFuture.allOf(futures.toArray(CompletableFuture[]::new));
  }

  /** They have left nothing. */
  @TearDown(Level.Invocation)
  public void end() {
    isolated.close();
  }

  /** The replica gets the write, and all of them are released. */
  @Benchmark
  public void release() {
    store.heal("b");
    all.join();
  }
}
