package dev.antipode.redis;

import org.junit.jupiter.api.BeforeAll;

/** The conformance kit on real servers, by Jedis (SHIM-18, SHIM-33). */
class RedisConformanceTest extends RedisConformance {
  @BeforeAll
  static void start() {
    start(ClientKind.JEDIS);
  }
}
