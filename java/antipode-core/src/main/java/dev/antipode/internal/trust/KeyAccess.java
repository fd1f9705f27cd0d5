package dev.antipode.internal.trust;

import dev.antipode.Keys;
import java.util.function.Function;

/** What {@link Keys} gives to seals, and keeps from applications; and the form of a seal, which both know. */
public final class KeyAccess {
  /** What a seal begins with. */
  public static final String MARK = "~_.h";

  /** How long its code is. */
  public static final int MAC_BYTES = 16;

  private static volatile Reader spelled;
  private static volatile Function<Keys, String> signer;

  private KeyAccess() {}

  /** Returns a key's octets for a purpose; null for an id that is not known. */
  public interface Reader {
    /** The octets by the id as it is spelled. */
    byte[] octets(Keys keys, String id, Purpose purpose);
  }

  /** Called by {@link Keys} once, before there are any. */
  public static void give(Reader reading, Function<Keys, String> signing) {
    spelled = reading;
    signer = signing;
  }

  static byte[] spelled(Keys keys, String id, Purpose purpose) {
    return spelled.octets(keys, id, purpose);
  }

  static String signer(Keys keys) {
    return signer.apply(keys);
  }
}
