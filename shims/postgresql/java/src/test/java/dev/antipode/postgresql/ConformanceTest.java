package dev.antipode.postgresql;

import dev.antipode.testing.ShimConformance;
import dev.antipode.testing.StoreUnderTest;
import org.junit.jupiter.api.AfterAll;

/** The conformance kit on a primary and two hot standbys (SHIM-18, SHIM-33). */
class ConformanceTest extends ShimConformance {
  private static PostgresqlUnderTest shared;

  @Override
  protected StoreUnderTest underTest() {
    if (shared == null) {
      shared = new PostgresqlUnderTest();
    }
    return shared;
  }

  @AfterAll
  static void end() {
    if (shared != null) {
      shared.close();
      shared = null;
    }
  }
}
