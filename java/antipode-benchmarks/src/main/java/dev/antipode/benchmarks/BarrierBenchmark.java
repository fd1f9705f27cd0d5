package dev.antipode.benchmarks;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Settings;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.observer.Outcome;
import dev.antipode.testing.Isolated;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** A barrier of a scope that has passed already, and the first one on a lineage whose positions are known to be there. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
@State(Scope.Thread)
public class BarrierBenchmark {
  /** How many stores the lineage has writes of. */
  @Param({"1", "5"})
  public int stores;

  private Isolated isolated;
  private LineageScope scope;
  private Lineage lineage;
  private long free;

  /** Stores whose writes are everywhere, and a barrier that has seen them. */
  @Setup
  public void pass() {
    isolated = new Isolated();
    Antipode.configure(Settings.defaults().freePathTtl(Duration.ofMinutes(10)));
    List<MemoryClient> writers = new ArrayList<>();
    for (int number = 0; number < stores; number++) {
      MemoryStore store = MemoryStore.named("store-" + number);
      writers.add(store.client("a"));
      store.client("b");
    }
    scope = Antipode.scope();
    writers.forEach(writer -> writer.set("k", "v"));
    lineage = scope.lineage();
    Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofSeconds(10)));
    free = Outcome.FREE.counted();
  }

  /** The share of free barriers has to be all of them. */
  @TearDown
  public void end() {
    if (Outcome.FREE.counted() == free) {
      throw new AssertionError("no barrier was free");
    }
    scope.close();
    isolated.close();
  }

  /** The same barrier again. */
  @Benchmark
  public BarrierResult satisfied() {
    return Antipode.barrier();
  }

  /** Another scope with the same writes, by the watermarks. */
  @Benchmark
  public BarrierResult first() {
    try (LineageScope request = Antipode.scope(lineage)) {
      return Antipode.barrier();
    }
  }
}
