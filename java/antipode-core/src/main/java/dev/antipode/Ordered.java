package dev.antipode;

import dev.antipode.internal.model.Names;
import dev.antipode.internal.model.WireForm;

/**
 * A version that compares within its epoch: a history that had one writer at a time (LIN-2).
 *
 * @param epoch the name of the history, at most 32 octets; only an object's version may have the empty one
 * @param counter an <em>unsigned</em> 64-bit number: compare by {@link #compareCounter}, print by
 *     {@link Long#toUnsignedString(long)}
 */
public record Ordered(String epoch, long counter) implements Version {
  /**
   * Checks the epoch.
   *
   * @throws IllegalArgumentException for an epoch of more than 32 octets
   */
  public Ordered {
    if (Names.octetCount(epoch) > WireForm.MAX_EPOCH) {
      throw new IllegalArgumentException("an epoch has at most " + WireForm.MAX_EPOCH + " octets: " + epoch);
    }
  }

  /**
   * A version whose counter is given in decimal, up to 18446744073709551615.
   *
   * @throws IllegalArgumentException for anything that is no unsigned 64-bit number
   */
  public static Ordered of(String epoch, String counter) {
    try {
      return new Ordered(epoch, Long.parseUnsignedLong(counter));
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException("a counter is an unsigned 64-bit number: " + counter, e);
    }
  }

  /** Compares this counter with another one of the same epoch, both unsigned (WIRE-9). */
  public int compareCounter(long other) {
    return Long.compareUnsigned(counter, other);
  }

  /** The counter in decimal. */
  public String counterText() {
    return Long.toUnsignedString(counter);
  }

  @Override
  public String toString() {
    return epoch + "." + counterText();
  }
}
