package dev.antipode.internal.trust;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** What a seal is for; one is good for nothing else (TRUST-36). */
public enum Purpose {
  /** A request. */
  REQUEST("antipode request"),
  /** A response. */
  RESPONSE("antipode response"),
  /** A message. */
  MESSAGE("antipode message"),
  /** What rests beside a value. */
  VALUE("antipode value");

  private final String label;

  Purpose(String label) {
    this.label = label;
  }

  /** Return whether its seals may be without an end (TRUST-21). */
  boolean mayRest() {
    return this == MESSAGE || this == VALUE;
  }

  /** The key of this purpose. */
  public byte[] derive(byte[] key) {
    return hmac(key, label);
  }

  /** The code of a text by a key. */
  static byte[] hmac(byte[] key, String text) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(key, "HmacSHA256"));
      return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    } catch (GeneralSecurityException e) {
      throw new AssertionError("every Java platform has HmacSHA256", e);
    }
  }
}
