package dev.antipode.testing;

import dev.antipode.internal.engine.BarrierLog;

/** Assertions about the barriers of the code under test. */
public final class BarrierAssertions {
  private BarrierAssertions() {}

  /**
   * Asserts that the code under test waited for this store at least so often, inside {@link Isolated}.
   *
   * @throws AssertionError where it did not: the read is unprotected
   * @throws IllegalStateException outside {@link Isolated}
   */
  public static void assertBarriers(String store, int atLeast) {
    BarrierLog log = BarrierLog.current();
    if (log == null) {
      throw new IllegalStateException("assertBarriers needs Isolated, or the extension AntipodeIsolated");
    }
    long count = log.count(store);
    if (count < atLeast) {
      throw new AssertionError(
          count + " barriers judged " + store + ", want at least " + atLeast + ": the read is unprotected");
    }
  }

  /** Asserts that the code under test waited for this store, inside {@link Isolated}. */
  public static void assertBarriers(String store) {
    assertBarriers(store, 1);
  }
}
