package dev.antipode.testing.conformance;

import org.opentest4j.TestAbortedException;

/** The few assertions that the cases need, so that the kit asks for no library but JUnit. */
final class Checks {
  private Checks() {}

  static void check(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError(what);
    }
  }

  static void checkEquals(Object wanted, Object found, String what) {
    check(java.util.Objects.equals(wanted, found), what + ": " + found + ", want " + wanted);
  }

  /** What this throws, which has to be of one of these types. */
  @SafeVarargs
  static RuntimeException thrown(Runnable work, Class<? extends RuntimeException>... types) {
    try {
      work.run();
    } catch (RuntimeException error) {
      for (Class<? extends RuntimeException> type : types) {
        if (type.isInstance(error)) {
          return error;
        }
      }
      throw error;
    }
    throw new AssertionError("nothing was thrown");
  }

  static void skip(String why) {
    throw new TestAbortedException(why);
  }
}
