package dev.antipode.memory;

import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.testing.ShimConformance;
import dev.antipode.testing.StoreUnderTest;
import org.junit.jupiter.api.Nested;

/** The conformance kit on the embedded store, in its three modes (SHIM-33). */
class MemoryConformanceTest {
  @Nested
  class Positions extends ShimConformance {
    @Override
    protected StoreUnderTest underTest() {
      return new MemoryUnderTest(Versions.POSITION);
    }
  }

  @Nested
  class Objects extends ShimConformance {
    @Override
    protected StoreUnderTest underTest() {
      return new MemoryUnderTest(Versions.OBJECT);
    }
  }

  @Nested
  class Marked extends ShimConformance {
    @Override
    protected StoreUnderTest underTest() {
      return new MemoryUnderTest(Versions.OPAQUE);
    }
  }
}
