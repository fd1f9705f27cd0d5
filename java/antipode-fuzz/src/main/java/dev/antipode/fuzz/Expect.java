package dev.antipode.fuzz;

/** Ends a fuzzer where something that must hold does not. */
final class Expect {
  private Expect() {}

  /** Something that must hold. */
  static void that(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError("does not hold: " + what);
    }
  }
}
