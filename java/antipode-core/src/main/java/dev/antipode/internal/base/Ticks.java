package dev.antipode.internal.base;

/** The engine's clock: nanoseconds since this class was loaded, never set back. */
public final class Ticks {
  private static final long ORIGIN = System.nanoTime();

  /** Before everything. */
  public static final long LONG_AGO = Long.MIN_VALUE / 4;

  private Ticks() {}

  /** Now. */
  public static long now() {
    return System.nanoTime() - ORIGIN;
  }
}
