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

/** What an outsider's request costs who is not believed: the kinds of headers that Python and C++ measure, too (WIRE-42). */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
@State(Scope.Thread)
public class HostileRequestBenchmark {
  private static final Logger LOGGER = Logger.getLogger("dev.antipode");

  /** What is made to cost much. */
  public enum Kind {
    /** Half of it lineage texts, each another one, half hops, his own address last. */
    TEXTS_AND_HOPS {
      @Override
      List<Header> headers(int octets) {
        String texts = IntStream.range(0, octets / 10).mapToObj("%04x"::formatted).collect(Collectors.joining(","));
        return List.of(
            new Header("antipode-lineage", texts),
            new Header("x-forwarded-for", "10.0.0.1,".repeat(octets / 18) + "203.0.113.9"));
      }
    },

    /** Members of baggage whose key is ours, percent-encoded. */
    ENCODED_MEMBERS {
      @Override
      List<Header> headers(int octets) {
        return List.of(new Header("baggage", "%61ntipode=%31,".repeat(octets / 15)));
      }
    },

    /** Lineage texts, percent-encoded. */
    ENCODED_TEXTS {
      @Override
      List<Header> headers(int octets) {
        return List.of(new Header("antipode-lineage", "%31%7e,".repeat(octets / 7)));
      }
    },

    /** Members of baggage with next to nothing in them. */
    EMPTY_MEMBERS {
      @Override
      List<Header> headers(int octets) {
        return List.of(new Header("baggage", "%=,".repeat(octets / 3)));
      }
    };

    abstract List<Header> headers(int octets);
  }

  /** Its kind. */
  @Param
  public Kind kind;

  /** Its length. */
  @Param({"32", "64"})
  public int kib;

  private List<Header> headers;

  /** What comes in. */
  @Setup
  public void fill() {
    LOGGER.setLevel(Level.OFF);
    headers = kind.headers(kib * 1024);
  }

  /** One request, until its response. */
  @Benchmark
  public String request() {
    try (Inbound inbound = new Inbound(Carriers.read(headers), "10.0.0.7", false)) {
      return inbound.responseText(false, 0, false);
    }
  }
}
