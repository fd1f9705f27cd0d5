package dev.antipode.redis;

import dev.antipode.testing.ShimConformance;
import dev.antipode.testing.StoreUnderTest;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/** The conformance kit on real servers (SHIM-18, SHIM-33). */
class RedisConformanceTest extends ShimConformance {
  private static RedisUnderTest underTest;

  @BeforeAll
  static void start() {
    underTest = new RedisUnderTest();
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
