package dev.antipode.internal.engine;

import dev.antipode.Ordered;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.shim.Server;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** What dry-run follows now, of barriers and of reads: bounded in number and in time (REC-15). */
public final class FollowRegistry {
  private static final long LAST_MILLIS = 250; // the end of the process waits so long for a record that is being made
  private static final Set<FollowedWrites> ALL = ConcurrentHashMap.newKeySet();
  private static volatile int most = 1000;
  private static volatile long followFor = TimeUnit.SECONDS.toNanos(30);

  private FollowRegistry() {}

  /**
   * Follows the writes of a read at its server; {@code over} gets them when all are seen, or after 30 s. False where too
   * many are followed, or this process is in trouble.
   */
  public static boolean follow(Server server, List<WriteId> wanted, Consumer<List<FollowedWrite>> over) {
    ServerEngine engine = (ServerEngine) server;
    return follow(List.of(new StoreRequest(engine.store(), wanted, List.of(engine))), over) != null;
  }

  /** Follows writes; null where too many are followed, or this process is in trouble. */
  static FollowedWrites follow(List<StoreRequest> wanted, Consumer<List<FollowedWrite>> over) {
    if (ALL.size() >= most) { // a race lets a few more in, as many as there are threads
      return null;
    }
    FollowedWrites followed = new FollowedWrites(ALL, wanted, followFor, over);
    ALL.add(followed);
    try {
      followed.start();
    } catch (Throwable error) { // no thread is to be had for its deadline: nobody would end it (BAR-61)
      followed.forget();
      return null;
    }
    return followed;
  }

  /** Whether a server is known to hold a position: no I/O, no lock (BAR-33). */
  public static boolean holds(Server server, WriteId id) {
    return id.isPosition()
        && id.version() instanceof Ordered position
        && ((ServerEngine) server).holds(position.epoch(), position.counter(), Ticks.now());
  }

  /** How much is followed now. */
  public static int count() {
    return ALL.size();
  }

  /** Whether every server has answered the first look of what is followed (tests: what comes after that is too late for it). */
  public static boolean allLookedAt() {
    return ALL.stream().allMatch(FollowedWrites::hasLooked);
  }

  /** Ends what is followed: each is recorded as far as it was seen. */
  public static void giveUpAll() {
    List<FollowedWrites> given = List.copyOf(ALL);
    given.forEach(FollowedWrites::giveUp);
    given.forEach(each -> each.awaitTold(LAST_MILLIS)); // the engine's thread may be making one of the records
  }

  /** Follows nothing any more, and records nothing of it (tests: what one left is no record of the next). */
  public static void forget() {
    List.copyOf(ALL).forEach(FollowedWrites::forget);
  }

  /** Sets how long a write is followed; returns what it was, in nanoseconds (tests). */
  public static long followFor(long nanos) {
    long before = followFor;
    followFor = nanos;
    return before;
  }

  /** Sets how many are followed at once; returns what it was (tests). */
  public static int most(int number) {
    int before = most;
    most = number;
    return before;
  }
}
