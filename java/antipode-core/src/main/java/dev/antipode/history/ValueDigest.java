package dev.antipode.history;

import dev.antipode.Key;
import dev.antipode.wire.Names;
import java.security.GeneralSecurityException;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** What stands for a value in a recorded history (HIST-28). */
public final class ValueDigest {
  /** In place of a value's digest: nothing is there. */
  public static final String GONE = "gone";

  /** In place of a value's digest: something is there, and its version says what. */
  public static final String THERE = "there";

  private static final String HASH = "HmacSHA256";
  private static final int DIGITS = 32;

  private ValueDigest() {}

  /** Names a value within one key of a store: two keys with one value cannot be told by it (HIST-29). */
  public static String of(String store, Key key, byte[] value) {
    byte[] name = Names.octets(store);
    byte[] salt = new byte[name.length + 1 + key.length()];
    System.arraycopy(name, 0, salt, 0, name.length);
    System.arraycopy(key.octets(), 0, salt, name.length + 1, key.length());
    try {
      Mac mac = Mac.getInstance(HASH);
      mac.init(new SecretKeySpec(salt, HASH));
      return HexFormat.of().formatHex(mac.doFinal(value)).substring(0, DIGITS);
    } catch (GeneralSecurityException error) { // every platform has it
      throw new IllegalStateException(error);
    }
  }
}
