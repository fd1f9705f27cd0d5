package dev.antipode.redis;

import dev.antipode.testing.ShimConformance;
import dev.antipode.testing.StoreUnderTest;
import org.junit.jupiter.api.AfterAll;

/** The conformance kit with one client; who extends it starts the servers before all cases. */
abstract class RedisConformance extends ShimConformance {
  private static RedisUnderTest underTest; // of the class that runs: one at a time

  static void start(ClientKind kind) {
    underTest = new RedisUnderTest(kind);
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
