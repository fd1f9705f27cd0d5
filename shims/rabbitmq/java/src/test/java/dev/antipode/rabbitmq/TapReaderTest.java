package dev.antipode.rabbitmq;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.rabbitmq.client.ConnectionFactory;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** What reads a tap, in a process that lacks memory or threads. */
class TapReaderTest {
  /** Else it would look like a broker that is silent, and be left out of the pass. */
  @Test
  void aFaultOfOursIsNoSilenceOfTheBroker_BAR_61() {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setSocketConfigurator(socket -> {
      throw new OutOfMemoryError("unable to create native thread");
    });
    Duration patience = Duration.ofSeconds(20);
    TapReader reader = new TapReader(Tap.of(factory, "tap"), new TapMemory(1), () -> {}, patience);
    assertThatThrownBy(() -> reader.start(patience)).hasRootCauseInstanceOf(OutOfMemoryError.class);
  }
}
