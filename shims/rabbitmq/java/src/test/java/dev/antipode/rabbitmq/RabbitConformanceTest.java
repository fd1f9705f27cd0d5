package dev.antipode.rabbitmq;

import dev.antipode.testing.ShimConformance;
import dev.antipode.testing.StoreUnderTest;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;

/** The conformance kit on real brokers (SHIM-18, SHIM-33). */
class RabbitConformanceTest extends ShimConformance {
  private static RabbitUnderTest underTest;

  @BeforeAll
  @Timeout(180)
  static void start() {
    underTest = new RabbitUnderTest(WithBroker.lab());
  }

  @AfterAll
  static void end() {
    underTest.close();
  }

  @Override
  protected StoreUnderTest underTest() {
    return underTest;
  }
}
