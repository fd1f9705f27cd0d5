package dev.antipode;

import dev.antipode.internal.model.Names;
import dev.antipode.internal.trust.KeyAccess;
import dev.antipode.internal.trust.Purpose;
import java.util.Base64;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Seal keys by id, in order: the first signs, all verify, so that two are valid while keys are rotated (TRUST-22).
 *
 * <p>It prints its ids, never the keys.
 */
public final class Keys {
  /** No key. */
  public static final Keys NONE = new Keys(new LinkedHashMap<>());

  private static final int LEAST_KEY = 16;
  private static final int LONGEST_ID = 32;

  private final Map<String, SealKey> bySpelledId;

  /** One key, its octets for each purpose wrapped so that nothing prints them. */
  private record SealKey(String id, Map<Purpose, byte[]> octets) {
    static SealKey of(String id, byte[] octets) {
      Map<Purpose, byte[]> derived = new EnumMap<>(Purpose.class);
      for (Purpose purpose : Purpose.values()) {
        derived.put(purpose, purpose.derive(octets));
      }
      return new SealKey(id, derived);
    }

    @Override
    public String toString() {
      return id;
    }
  }

  static {
    KeyAccess.give(Keys::spelled, Keys::signer);
  }

  private Keys(LinkedHashMap<String, SealKey> bySpelledId) {
    this.bySpelledId = bySpelledId;
  }

  /**
   * Keys by their ids, in the order of the map.
   *
   * @throws ConfigurationException for an empty or over-long id, and for a key of fewer than 16 octets
   */
  public static Keys of(Map<String, byte[]> keys) {
    LinkedHashMap<String, SealKey> bySpelledId = new LinkedHashMap<>();
    keys.forEach((id, octets) -> {
      String spelled = Names.spellName(id);
      if (spelled.isEmpty() || spelled.length() > LONGEST_ID) {
        throw new ConfigurationException(
            "AP304", "a seal key's id has 1 to " + LONGEST_ID + " characters: '" + id + "'");
      }
      if (octets.length < LEAST_KEY) {
        throw new ConfigurationException(
            "AP304", "the seal key '" + id + "' has " + octets.length + " octets; at least " + LEAST_KEY);
      }
      bySpelledId.put(spelled, SealKey.of(id, octets));
    });
    return new Keys(bySpelledId);
  }

  /**
   * Reads a keys file: one {@code id base64} a line; empty lines and those that begin with {@code #} do not count.
   *
   * @param origin what the text is, for messages, which name it and the line and never the key
   * @throws ConfigurationException for a file that is not in that form, or holds no key
   */
  public static Keys parse(String text, String origin) {
    Map<String, byte[]> keys = new LinkedHashMap<>();
    int number = 0;
    for (String line : text.lines().toList()) {
      number++;
      String where = origin + ", line " + number + ": ";
      List<String> fields = List.of(line.strip().split("\\s+"));
      if (fields.get(0).isEmpty() || fields.get(0).startsWith("#")) {
        continue;
      }
      if (fields.size() != 2) {
        throw new ConfigurationException("AP304", where + "want `id base64`");
      }
      String id = fields.get(0);
      if (keys.containsKey(id)) {
        throw new ConfigurationException("AP304", where + "the key id '" + id + "' stands twice");
      }
      keys.put(id, octets(fields.get(1), where + "the key '" + id + "' is no base64"));
    }
    if (keys.isEmpty()) {
      throw new ConfigurationException("AP304", origin + " holds no key; want one `id base64` a line");
    }
    try {
      return of(keys);
    } catch (ConfigurationException e) {
      throw new ConfigurationException("AP304", origin + ": " + e.words());
    }
  }

  private static byte[] octets(String encoded, String complaint) {
    // The decoder would take text without its padding, which others refuse: a file must mean the same everywhere.
    if (encoded.length() % 4 != 0) {
      throw new ConfigurationException("AP304", complaint);
    }
    try {
      return Base64.getDecoder().decode(encoded);
    } catch (IllegalArgumentException e) {
      throw new ConfigurationException("AP304", complaint);
    }
  }

  /** The ids, in order. */
  public List<String> ids() {
    return bySpelledId.values().stream().map(SealKey::id).toList();
  }

  /** Whether there is no key. */
  public boolean isEmpty() {
    return bySpelledId.isEmpty();
  }

  /** The octets, for this purpose, of the key whose id is spelled so in a seal; null: there is none (TRUST-36). */
  private byte[] spelled(String id, Purpose purpose) {
    SealKey key = bySpelledId.get(id);
    return key == null ? null : key.octets().get(purpose);
  }

  /** The spelled id of the key that signs, or null. */
  private String signer() {
    return isEmpty() ? null : bySpelledId.keySet().iterator().next();
  }

  /** How many bytes a seal of the signing key adds to a text; 0 without a key. */
  public int sealLength() {
    return isEmpty() ? 0 : (KeyAccess.MARK + "." + signer() + ".9999999999.").length() + 2 * KeyAccess.MAC_BYTES;
  }

  @Override
  public String toString() {
    return "Keys" + ids();
  }
}
