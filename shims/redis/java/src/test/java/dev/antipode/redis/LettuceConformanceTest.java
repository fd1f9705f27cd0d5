package dev.antipode.redis;

import org.junit.jupiter.api.BeforeAll;

/** The conformance kit on real servers, by Lettuce (SHIM-18, SHIM-33). */
class LettuceConformanceTest extends RedisConformance {
  @BeforeAll
  static void start() {
    start(ClientKind.LETTUCE);
  }
}
