package dev.antipode;

import dev.antipode.internal.model.Names;
import dev.antipode.internal.model.Section;
import dev.antipode.internal.model.WireForm;

/**
 * One write to one datastore: {@code <store, key, version>} (paper section 5.1, LIN-1).
 *
 * <p>An empty key makes it a <em>position</em>: everything in the store's history up to the version.
 *
 * @param store the logical name of the datastore, 1 to 63 octets, the same in every service and region
 * @param key which object in it
 * @param version what the write made of the object
 */
public record WriteId(String store, Key key, Version version) {
  /**
   * Checks the parts.
   *
   * @throws IllegalArgumentException for what the wire form cannot carry: an empty or long name of a store, a position
   *     that is opaque or has no epoch (LIN-3, LIN-4)
   */
  public WriteId {
    checkStore(store);
    if (key.isEmpty()) {
      if (!(version instanceof Ordered ordered)) {
        throw new IllegalArgumentException("an opaque version needs a key: a position is ordered");
      }
      if (ordered.epoch().isEmpty()) {
        throw new IllegalArgumentException("a position needs an epoch");
      }
    }
  }

  /** One write to an object; the key's text is taken as UTF-8. */
  public WriteId(String store, String key, Version version) {
    this(store, Key.of(key), version);
  }

  /** Everything in a store's history {@code epoch} up to {@code counter}, which is unsigned. */
  public static WriteId position(String store, String epoch, long counter) {
    return new WriteId(store, Key.EMPTY, new Ordered(epoch, counter));
  }

  /** Whether this covers a whole history up to its counter. */
  public boolean isPosition() {
    return key.isEmpty();
  }

  /** The write of a spelled entry that has been validated. */
  static WriteId of(String spelledStore, Section.Entry entry) {
    Version version = entry.isOpaque()
        ? new Opaque(Names.unspellName(entry.last()))
        : Ordered.of(Names.unspellName(entry.epoch()), entry.last());
    return new WriteId(Names.unspellName(spelledStore), Key.of(Names.unspell(entry.key())), version);
  }

  /** This write alone, as a section of the wire form. It holds the key, which can be private. */
  public String section() {
    String head = Names.spellName(store) + "." + key.spelled() + ".";
    if (version instanceof Ordered ordered) {
      return head + Names.spellName(ordered.epoch()) + "." + ordered.counterText();
    }
    return head + Section.OPAQUE + "." + Names.spellName(((Opaque) version).mark());
  }

  @Override
  public String toString() {
    return section();
  }

  private static void checkStore(String store) {
    int octets = Names.octetCount(store);
    if (octets < 1 || octets > WireForm.MAX_STORE) {
      throw new IllegalArgumentException("a store's name has 1 to " + WireForm.MAX_STORE + " octets: " + store);
    }
  }
}
