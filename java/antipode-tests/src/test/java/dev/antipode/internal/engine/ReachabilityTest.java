package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** How long this process stood still is no silence of a server (BAR-26, BAR-61). */
class ReachabilityTest {
  private static final long START = TimeUnit.HOURS.toNanos(1);
  private static final long PAUSE = TimeUnit.MINUTES.toNanos(10);
  private static final long OUT_AFTER = EngineSettings.now().replicaOutAfter();

  private final Reachability server = new Reachability();

  @Test
  void aQuestionThatFailedBehindAPauseIsNoLongSilence() {
    server.failed(START, START + PAUSE, "reset");
    assertThat(server.isDown()).isTrue();
    assertThat(server.isOut(START + PAUSE)).isFalse();
  }

  @Test
  void norIsALaterOne() {
    server.failed(START, START, "reset");
    server.failed(START, START + PAUSE, "reset");
    assertThat(server.isOut(START + PAUSE)).isFalse();
  }

  @Test
  void aSilenceThatIsAskedAboutAddsUp() {
    long step = Reachability.RETRY_MOST;
    for (long at = START; at <= START + OUT_AFTER; at += step) {
      server.failed(at, at, "refused");
    }
    assertThat(server.isOut(START + OUT_AFTER)).isTrue();
  }
}
