package dev.antipode.shim;

import dev.antipode.Rest;
import java.util.EnumSet;
import java.util.Set;

/**
 * What a kind of store can do; each value obliges its shim (SHIM-18).
 *
 * <p>{@code Capabilities.positions().push(true).marks(Marks.IN_BAND)}
 *
 * @param versions what the store's writes are called
 * @param push {@link Shim#watch} tells when a server has changed
 * @param blockingWait {@link Shim#await} blocks at the server until a write is visible
 * @param tombstones deletes leave a version behind; without, they are answered unproven
 * @param rest where a lineage can rest beside its value in the same atomic operation
 * @param tap queues: arrival can be observed, so that messages may be tracked
 * @param marks how ended epochs are decided
 */
public record Capabilities(
    Versions versions,
    boolean push,
    boolean blockingWait,
    boolean tombstones,
    Set<Rest> rest,
    boolean tap,
    Marks marks) {

  /** What the versions of a store's writes are. */
  public enum Versions {
    /** Places in the store's log, with epochs. */
    POSITION("position"),
    /** Each object's own, and they compare. */
    OBJECT("object"),
    /** Each object's own, equal or not. */
    OPAQUE("opaque");

    private final String word;

    Versions(String word) {
      this.word = word;
    }

    /** The same word in all languages. */
    public String word() {
      return word;
    }
  }

  /** How ended epochs are decided (EPOCH-16, EPOCH-23). */
  public enum Marks {
    /** The server's own state proves it. */
    NATIVE,
    /** By records in the store. */
    IN_BAND,
    /** They are not. */
    NONE
  }

  /** Makes a value of its own of the set. */
  public Capabilities {
    rest = Set.copyOf(rest);
  }

  private static Capabilities of(Versions versions) {
    return new Capabilities(versions, false, false, false, Set.of(), false, Marks.NONE);
  }

  /** A store whose writes are positions in its log. */
  public static Capabilities positions() {
    return of(Versions.POSITION);
  }

  /** A store whose objects have versions that compare. */
  public static Capabilities objects() {
    return of(Versions.OBJECT);
  }

  /** A store whose objects have versions without order. */
  public static Capabilities opaque() {
    return of(Versions.OPAQUE);
  }

  /** The same, with or without push. */
  public Capabilities push(boolean value) {
    return new Capabilities(versions, value, blockingWait, tombstones, rest, tap, marks);
  }

  /** The same, with or without a blocking wait of the store's own. */
  public Capabilities blockingWait(boolean value) {
    return new Capabilities(versions, push, value, tombstones, rest, tap, marks);
  }

  /** The same, with or without tombstones. */
  public Capabilities tombstones(boolean value) {
    return new Capabilities(versions, push, blockingWait, value, rest, tap, marks);
  }

  /** The same, with these places for a lineage. */
  public Capabilities rest(Rest first, Rest... more) {
    return new Capabilities(versions, push, blockingWait, tombstones, EnumSet.of(first, more), tap, marks);
  }

  /** The same, with or without a tap. */
  public Capabilities tap(boolean value) {
    return new Capabilities(versions, push, blockingWait, tombstones, rest, value, marks);
  }

  /** The same, with ended epochs decided so. */
  public Capabilities marks(Marks value) {
    return new Capabilities(versions, push, blockingWait, tombstones, rest, tap, value);
  }
}
