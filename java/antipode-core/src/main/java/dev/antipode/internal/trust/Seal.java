package dev.antipode.internal.trust;

import dev.antipode.ConfigurationException;
import dev.antipode.Keys;
import dev.antipode.internal.model.Names;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Seals: a keyed proof that a lineage text was written by one of ours (TRUST-18 to TRUST-24).
 *
 * <p>A seal is the last extension of a text, {@code ~_.h.KEYID.EXPIRY.MAC}. It is no part of the lineage: dropped where
 * the text is read, made anew where it is written. The MAC covers everything before it, key id and expiry included: were
 * the expiry outside, whoever saw one sealed text could use it for ever.
 */
public final class Seal {
  private static final long LEEWAY_S = 30;
  private static final Pattern TAIL =
      Pattern.compile("\\.((?:[A-Za-z0-9-]|_[0-9A-F]{2})+)\\.(0|[1-9][0-9]{0,18})\\.([0-9a-f]{32})");

  private Seal() {}

  /** What a look at a text's seal found; {@link #VALID} and {@link #EXPIRED} prove who wrote it. */
  public enum State {
    /** The MAC is right, and the seal holds still. */
    VALID("valid", ""),
    /** There is no seal. */
    MISSING("missing", "it has no seal"),
    /** The MAC is right, and the time is over by more than 30 s. */
    EXPIRED("expired", "its seal has expired"),
    /** Nobody here has this key. */
    UNKNOWN_KEY("unknown key", "its seal is by a key that is not known here"),
    /** Anything else. */
    BAD("bad", "its seal is not right");

    private final String word;
    private final String sentence;

    State(String word, String sentence) {
      this.word = word;
      this.sentence = sentence;
    }

    /** The same word in all languages. */
    public String word() {
      return word;
    }

    String sentence() {
      return sentence;
    }

    @Override
    public String toString() {
      return word;
    }
  }

  /**
   * A text whose seal was looked at.
   *
   * @param text the text without its seal; it may be parsed only where the seal is valid
   * @param state what the seal was worth
   */
  public record OpenedSeal(String text, State state) {}

  /**
   * The text with a seal of the first key, which holds from {@code now} for {@code ttl}; zero: without end. A seal that the text
   * has already is replaced.
   *
   * @throws ConfigurationException without a key
   */
  public static String seal(String text, Keys keys, Purpose purpose, Instant now, Duration ttl) {
    String signer = KeyAccess.signer(keys);
    if (signer == null) {
      throw new ConfigurationException("AP303", "no key to seal with: set ANTIPODE_KEYS_FILE");
    }
    String claim = strip(text) + KeyAccess.MARK + "." + signer + "." + (ttl.isZero() ? 0 : now.plus(ttl).getEpochSecond());
    return claim + "." + mac(KeyAccess.spelled(keys, signer, purpose), claim);
  }

  /** Takes a text's seal off and verifies it; throws nothing. */
  public static OpenedSeal open(String text, Keys keys, Purpose purpose, Instant now) {
    int mark = text.lastIndexOf(KeyAccess.MARK);
    if (mark < 0) {
      return new OpenedSeal(text, State.MISSING);
    }
    String body = text.substring(0, mark);
    String tail = text.substring(mark + KeyAccess.MARK.length());
    Matcher match = TAIL.matcher(tail);
    if (!match.matches()) {
      // The mark may also begin another extension's tag, such as `~_.hint`.
      boolean otherTag = !tail.isEmpty() && Character.isLetterOrDigit(tail.charAt(0));
      return otherTag ? new OpenedSeal(text, State.MISSING) : new OpenedSeal(body, State.BAD);
    }
    byte[] key = KeyAccess.spelled(keys, match.group(1), purpose);
    if (key == null) {
      return new OpenedSeal(body, State.UNKNOWN_KEY);
    }
    String mac = match.group(3);
    String right = mac(key, text.substring(0, text.length() - mac.length() - 1));
    if (!MessageDigest.isEqual(right.getBytes(StandardCharsets.US_ASCII), mac.getBytes(StandardCharsets.US_ASCII))) {
      return new OpenedSeal(body, State.BAD);
    }
    long expiry = Long.parseUnsignedLong(match.group(2));
    if (expiry == 0) {
      return new OpenedSeal(body, purpose.mayRest() ? State.VALID : State.BAD);
    }
    boolean holds = Long.compareUnsigned(now.getEpochSecond(), expiry + LEEWAY_S) < 0;
    return new OpenedSeal(body, holds ? State.VALID : State.EXPIRED);
  }

  /**
   * The text without its seal, unverified. A tail that is no extension stays, and the reader refuses it (WIRE-15): what
   * was cut or changed on the way must not look like the lineage that is left over.
   */
  public static String strip(String text) {
    int mark = text.lastIndexOf(KeyAccess.MARK);
    if (mark < 0) {
      return text;
    }
    String body = text.substring(0, mark);
    boolean another = body.endsWith(KeyAccess.MARK) || body.contains(KeyAccess.MARK + ".") || body.contains(KeyAccess.MARK + "~");
    boolean spaced = !body.equals(body.strip()); // a reader of the rest alone would take it for white space around it
    return isLexical(text.substring(mark + KeyAccess.MARK.length())) && !another && !spaced ? body : text;
  }

  private static boolean isLexical(String tail) {
    if (tail.isEmpty()) {
      return true;
    }
    if (tail.charAt(0) != '.') {
      return false;
    }
    for (String field : tail.substring(1).split("\\.", -1)) {
      if (!Names.isSpelled(field)) {
        return false;
      }
    }
    return true;
  }

  private static String mac(byte[] key, String claim) {
    return HexFormat.of().formatHex(Purpose.hmac(key, claim), 0, KeyAccess.MAC_BYTES);
  }
}
