package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.shim.Visibility;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Who waits at one server, step by step. */
class WaitersTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final WriteId POSITION = WriteId.position("log", "e1", 1);

  private final ServerEngine server = new ServerEngine(null, "log-1", null);
  private final WaitQueue waiters = new WaitQueue(10 * SECOND);
  private final long now = Ticks.now();

  private PendingWait parked(long timeout, long since, boolean follows) {
    PendingWait need = new WaitGroup(timeout, since, () -> { }, follows).add(POSITION, server);
    isBehind = waiters.add(need, 0);
    return need;
  }

  private boolean isBehind; // whether the last one that was parked rides along

  private void answer(long at, Visibility answer) {
    List<WriteId> ids = waiters.choose(at, at);
    waiters.answer(ids, List.of(answer), Map.of(), at, new Proof(at, 0, false), "", 0);
  }

  /** And not since somebody began to wait, at another server perhaps, whose deadline is longer. */
  @Test
  void anEpochIsUnknownSinceTheServerSaidSo_EPOCH_13() {
    Visibility unknown = Visibility.unknownEpoch("it does not know e1");
    PendingWait patient = parked(60 * SECOND, now - 50 * SECOND, false);
    answer(now, unknown);
    PendingWait later = parked(5 * SECOND, now, false);
    answer(now + 4 * SECOND, unknown);
    assertThat(later.isDone()).isFalse();
    answer(now + 5 * SECOND, unknown);
    assertThat(later.isDone()).isTrue();
    assertThat(patient.isDone()).isFalse();
    answer(now + 10 * SECOND, unknown);
    assertThat(patient.isDone()).as("its whole deadline has passed").isTrue();
  }

  @Test
  void aBarrierDoesNotRideAlongBehindARecord_REC_21() {
    parked(30 * SECOND, now, true);
    answer(now, Visibility.NOT_YET);
    parked(30 * SECOND, now, true);
    assertThat(isBehind).isTrue();
    parked(SECOND, now, false);
    assertThat(isBehind).as("it is asked for at once").isFalse();
    parked(SECOND, now, false);
    assertThat(isBehind).isTrue();
  }
}
