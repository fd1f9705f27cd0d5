package dev.antipode.propagation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.testing.AntipodeIsolated;
import dev.antipode.testing.CapturedLogs;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What a request of an outsider costs, who is not believed: bounded, and in proportion to its length (WIRE-42, TRUST-32). */
@ExtendWith(AntipodeIsolated.class)
class HostileRequestTest {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  private static final double MOST_MS = 20;
  private static final double MOST_GROWTH = 2.3;
  private static final double GRAIN_MS = 0.5; // of the clock, and of what the machine does besides

  /** Half lineage texts of four characters, half hops inside, and the outsider's own address last. */
  private static List<Header> longLists(int kib) {
    String texts = IntStream.range(0, kib * 512 / 5)
        .mapToObj(number -> Integer.toHexString(0x1000 + number))
        .collect(Collectors.joining(","));
    return List.of(
        new Header("antipode-lineage", texts), new Header("x-forwarded-for", "10.0.0.1,".repeat(kib * 512 / 9) + " 203.0.113.9"));
  }

  private static List<Header> escapes(int kib) {
    return List.of(
        new Header("baggage", "%61ntipode=%31,".repeat(kib * 512 / 15)),
        new Header("forwarded", "for=\"\\1\\0.0.0.1\";by=x,".repeat(kib * 512 / 22)));
  }

  private static List<Header> lines(int kib) {
    return IntStream.range(0, kib * 1024 / 40)
        .mapToObj(number -> number % 2 == 0
            ? new Header("Antipode-Lineage", "1~s" + number + "..e.1")
            : new Header("X-Forwarded-For", "10.0.0.1"))
        .toList();
  }

  /** The least of several runs: what it costs, and not what else the machine does. */
  private static double milliseconds(List<Header> headers, int runs) {
    long least = Long.MAX_VALUE;
    for (int run = 0; run < runs; run++) {
      long before = THREADS.getCurrentThreadCpuTime();
      try (Inbound inbound = new Inbound(Carriers.read(headers), "10.0.0.7", false)) {
        assertThat(inbound.responseText(false, SharedCaches.ANY_STATUS, false)).isNull();
      }
      least = Math.min(least, THREADS.getCurrentThreadCpuTime() - before);
    }
    return least / 1e6;
  }

  @Test
  void aLongRequestCostsLittle_WIRE_42_TRUST_32() {
    try (CapturedLogs logs = new CapturedLogs()) {
      for (List<Header> warm : List.of(longLists(8), escapes(8), lines(8))) {
        milliseconds(warm, 300);
      }
      assertThat(milliseconds(longLists(64), 10)).as("lists").isLessThan(MOST_MS);
      assertThat(milliseconds(escapes(64), 10)).as("escapes").isLessThan(MOST_MS);
      assertThat(milliseconds(lines(64), 10)).as("lines").isLessThan(MOST_MS);
      for (IntFunction<List<Header>> kind : List.<IntFunction<List<Header>>>of(
          HostileRequestTest::longLists, HostileRequestTest::escapes, HostileRequestTest::lines)) {
        double half = milliseconds(kind.apply(128), 50);
        assertThat(milliseconds(kind.apply(256), 50)).isLessThan(MOST_GROWTH * half + GRAIN_MS);
      }
      assertThat(logs.lines()).hasSizeLessThan(20);
    }
  }
}
