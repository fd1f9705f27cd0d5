package dev.antipode;

import dev.antipode.internal.model.Names;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * The key of a write: immutable octets, in the canonical form that the store's shim defines. The empty key is that of a
 * position.
 */
public final class Key implements Comparable<Key> {
  /** The key of positions. */
  public static final Key EMPTY = new Key(new byte[0]);

  private final byte[] octets;

  private Key(byte[] octets) {
    this.octets = octets;
  }

  /** A key of these octets, which are copied. */
  public static Key of(byte[] octets) {
    return octets.length == 0 ? EMPTY : new Key(octets.clone());
  }

  /** A key of this text, as UTF-8 and not normalised (WIRE-38). */
  public static Key of(String text) {
    return text.isEmpty() ? EMPTY : new Key(Names.octets(text));
  }

  /** The octets, as a copy. */
  public byte[] octets() {
    return octets.clone();
  }

  /** How many octets it has. */
  public int length() {
    return octets.length;
  }

  /** Whether it is the key of a position. */
  public boolean isEmpty() {
    return octets.length == 0;
  }

  /** The key as text; an octet that is no UTF-8 is a lone surrogate U+DC80 to U+DCFF, so that nothing is lost. */
  public String text() {
    return Names.text(octets);
  }

  /** Whether this stands for a key that was long or private (WIRE-17): a store that asks by key cannot ask for it. */
  public boolean isHashed() {
    return Names.isHashed(octets);
  }

  /** This key in its hashed form (WIRE-17); itself where it is empty or in that form already. */
  public Key hashed() {
    return isEmpty() || isHashed() ? this : new Key(Names.hashedKey(octets));
  }

  /** The key as it is spelled in a lineage (WIRE-2, WIRE-18). */
  String spelled() {
    return Names.spellKey(octets);
  }

  /** The order of unsigned octets. */
  @Override
  public int compareTo(Key other) {
    return Arrays.compareUnsigned(octets, other.octets);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Key key && Arrays.equals(octets, key.octets);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(octets);
  }

  /** The length alone: keys can be private, and this goes into log lines (OBS-5). For the octets ask by name. */
  @Override
  public String toString() {
    return "key of " + octets.length + " octets";
  }

  /** The octets in hexadecimal digits, for tools. */
  public String hex() {
    return HexFormat.of().formatHex(octets);
  }
}
