package dev.antipode.postgresql;

import dev.antipode.testing.FailoverFuzzer;
import dev.antipode.testing.FailoverTally;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The failover fuzzer: a few runs; more of them with {@code -Dantipode.fuzz.runs=100} (EPOCH-27). */
class FailoverFuzzerTest {
  /** The position is what the log has made durable behind the commit: a timeline may end between the two. */
  private static final double MOST_RASH = 0.01;

  private static final double MOST_UNPROVEN = 0.02;
  private static final long MOST_HOURS = 2;

  @Test
  @Timeout(value = MOST_HOURS, unit = java.util.concurrent.TimeUnit.HOURS)
  void randomFailoversShowNoFalsePassAndNoHang() {
    int runs = Integer.getInteger("antipode.fuzz.runs", 2);
    FailoverTally tally = FailoverFuzzer.run(PostgresqlDriver::new, runs, Long.getLong("antipode.fuzz.seed", 3L));
    System.out.println(tally);
    tally.check(MOST_UNPROVEN, MOST_RASH);
  }
}
