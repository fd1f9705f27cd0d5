package shop;

import java.util.function.Supplier;

/** An application's own code, outside our packages: where findings say that they happened (REC-11). */
public final class Reader {
  private Reader() {}

  /** Reads without a barrier. */
  public static <T> T read(Supplier<T> work) {
    return work.get();
  }
}
