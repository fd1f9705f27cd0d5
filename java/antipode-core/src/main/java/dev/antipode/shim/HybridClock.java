package dev.antipode.shim;

import dev.antipode.internal.model.Names;
import dev.antipode.observer.Observers;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.util.OptionalLong;
import java.util.function.Supplier;

/**
 * A hybrid logical clock in 64 bits: the counters of objects whose store gives no ordered version (SHIM-24 to SHIM-29).
 *
 * <p>A counter is unsigned: bits 63 to 14 hold the <em>tick</em>, the time in 1/256 ms since 1970 (until the year 2109),
 * bits 13 to 0 the <em>node</em> that issued it. Counters of one process grow, and pass every counter that it has
 * observed. Safe among threads.
 */
public final class HybridClock {
  /** How many bits of a counter name its node. */
  public static final int NODE_BITS = 14;

  /** The upper bits of a node: the number of its region. Below them are bits that tell its processes apart. */
  public static final int PLACE_BITS = 8;

  /** A counter that is further ahead of this machine's time is refused (SHIM-27). */
  public static final Duration MAX_AHEAD = Duration.ofSeconds(60);

  private static final long TICKS_PER_MS = 256;
  private static final long MAX_TICK = -1L >>> NODE_BITS;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final int node;
  private final long maxAheadTicks;
  private final Supplier<Instant> time;
  private long last; // under the lock of this, as the next
  private long refused;

  private HybridClock(int node, Duration maxAhead, Supplier<Instant> time) {
    this.node = node;
    this.maxAheadTicks = maxAhead.toMillis() * TICKS_PER_MS;
    this.time = time;
  }

  /** A clock whose whole node is drawn by chance. */
  public static HybridClock create() {
    return ofNode(RANDOM.nextInt(1 << NODE_BITS));
  }

  /**
   * A clock in the region of this number, where counters of several regions meet.
   *
   * @throws IllegalArgumentException for a number that is not 0 to 255
   */
  public static HybridClock inPlace(int place) {
    if (place >> PLACE_BITS != 0) {
      throw new IllegalArgumentException("a place is a number from 0 to " + ((1 << PLACE_BITS) - 1) + ": " + place);
    }
    int processBits = NODE_BITS - PLACE_BITS;
    return ofNode(place << processBits | RANDOM.nextInt(1 << processBits));
  }

  /**
   * A clock of this node, where numbers are assigned to the processes.
   *
   * @throws IllegalArgumentException for a number that is not 0 to 16383
   */
  public static HybridClock ofNode(int node) {
    return ofNode(node, MAX_AHEAD, Instant::now);
  }

  /** The same with another bound, and with a time of its own (for tests). */
  public static HybridClock ofNode(int node, Duration maxAhead, Supplier<Instant> time) {
    if (node >> NODE_BITS != 0) {
      throw new IllegalArgumentException("a node is a number from 0 to " + ((1 << NODE_BITS) - 1) + ": " + node);
    }
    return new HybridClock(node, maxAhead, time);
  }

  /** The number of a region where none was chosen: the first octet of the SHA-256 of its name (SHIM-29). */
  public static int placeNumber(String region) {
    return Names.sha256(Names.octets(region))[0] & 0xFF;
  }

  /** When a counter was issued, by the clock that issued it. */
  public static Instant timeOf(long counter) {
    long tick = counter >>> NODE_BITS;
    long nanosInMs = tick % TICKS_PER_MS * 1_000_000 / TICKS_PER_MS;
    return Instant.ofEpochMilli(tick / TICKS_PER_MS).plusNanos(nanosInMs);
  }

  /** The tick of a time: nanoseconds times 256 pass 64 bits, so it is taken apart by seconds. */
  private static long tickOf(Instant instant) {
    return Math.floorDiv(instant.getNano() * TICKS_PER_MS, 1_000_000L)
        + instant.getEpochSecond() * 1000 * TICKS_PER_MS;
  }

  /** What ends every counter of this clock. */
  public int node() {
    return node;
  }

  /** How many counters were refused because they are too far ahead. */
  public synchronized long refused() {
    return refused;
  }

  /** A counter greater than any that this clock has issued or observed, unsigned (SHIM-25). */
  public long next() {
    long now = tickOf(time.get());
    synchronized (this) {
      last = Math.max(now, last + 1);
      return last << NODE_BITS | node;
    }
  }

  /** Makes every counter to come greater than this one; false where it is too far ahead, and refused (SHIM-27). */
  public boolean observe(long counter) {
    long tick = counter >>> NODE_BITS;
    long ahead;
    synchronized (this) {
      if (tick <= last) {
        return true;
      }
      ahead = tick - tickOf(time.get());
      if (ahead <= maxAheadTicks) {
        last = tick;
        return true;
      }
      refused++;
    }
    Observers.events().onLineageDropped("implausible", "write");
    Logs.warn(
        "AP413",
        "clock",
        "refused a version " + ahead / (TICKS_PER_MS * 1000) + " s ahead of this machine's time: it is forged, or the "
            + "clock of this machine or of the writer's is wrong.");
    return false;
  }

  /**
   * A counter of this node just greater than a refused one, for its key alone; empty where none is left (SHIM-28). The
   * clock itself stays where it is.
   */
  public OptionalLong above(long counter) {
    long tick = (counter >>> NODE_BITS) + 1;
    return tick > MAX_TICK ? OptionalLong.empty() : OptionalLong.of(tick << NODE_BITS | node);
  }
}
