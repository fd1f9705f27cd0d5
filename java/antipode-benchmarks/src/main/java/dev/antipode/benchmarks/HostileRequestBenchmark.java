package dev.antipode.benchmarks;

import dev.antipode.propagation.Carriers;
import dev.antipode.propagation.Header;
import dev.antipode.propagation.Inbound;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
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
import org.openjdk.jmh.annotations.Warmup;

/** What an outsider's request costs who is not believed: half of it lineage texts, half hops, his own address last (WIRE-42). */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
@State(Scope.Thread)
public class HostileRequestBenchmark {
  private static final Logger LOGGER = Logger.getLogger("dev.antipode");

  /** Its length. */
  @Param({"8", "32", "64"})
  public int kib;

  private List<Header> headers;

  /** What comes in. */
  @Setup
  public void fill() {
    LOGGER.setLevel(Level.OFF);
    String texts = IntStream.range(0, kib * 512 / 5)
        .mapToObj(number -> Integer.toHexString(0x1000 + number))
        .collect(Collectors.joining(","));
    headers = List.of(
        new Header("antipode-lineage", texts), new Header("x-forwarded-for", "10.0.0.1,".repeat(kib * 512 / 9) + " 203.0.113.9"));
  }

  /** One request, until its response. */
  @Benchmark
  public String request() {
    try (Inbound inbound = new Inbound(Carriers.read(headers), "10.0.0.7", false)) {
      return inbound.responseText(false);
    }
  }
}
