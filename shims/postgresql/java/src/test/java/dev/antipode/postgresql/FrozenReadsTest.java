package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.Lineage;
import dev.antipode.Reading;
import java.sql.Connection;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Reads that wait at a standby that does not answer. */
class FrozenReadsTest extends QuietRegion {
  @Test
  void theWaitEndsByItsDeadlineAndItsConnectionIsClosed_SHIM_47() throws Exception {
    var standby = region().wrap("b1", options().timeout(Duration.ofMillis(400)));
    for (boolean autocommit : new boolean[] {true, false}) {
      try (Connection connection = standby.getConnection(); Connection other = standby.getConnection()) {
        connection.setAutoCommit(autocommit);
        other.setNetworkTimeout(Runnable::run, 30_000);
        String before = newKey();
        Lineage there = write(before);
        region().waitCaughtUp("b1");
        try (Reading seen = Antipode.reading(there)) {
          assertThat(Region.shows(connection, before)).isEqualTo("v");
          assertThat(Region.shows(other, before)).isEqualTo("v");
          assertThat(seen.after()).isPresent();
        }
        assertThat(connection.getNetworkTimeout()).isZero(); // the application's own
        assertThat(other.getNetworkTimeout()).isEqualTo(30_000);
        region().lab().freeze(Region.KIND, "b1");
        Lineage written;
        long began;
        try {
          written = write(newKey());
          began = System.nanoTime();
          try (Reading seen = Antipode.reading(written)) {
            assertThatThrownBy(() -> Region.shows(connection, "any")).isInstanceOf(BarrierTimeoutException.class)
                .hasMessageContaining("does not answer");
            assertThatThrownBy(() -> Region.shows(other, "any")).isInstanceOf(BarrierTimeoutException.class);
            assertThat(seen.after()).contains(written);
          }
          assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(10));
          assertThat(connection.isClosed()).isTrue();
          assertThat(other.isClosed()).isTrue();
        } finally {
          region().lab().thaw(Region.KIND, "b1");
        }
      }
    }
  }
}
