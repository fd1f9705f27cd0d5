package dev.antipode.shim;

import dev.antipode.ConfigurationException;
import dev.antipode.Forwarded;
import dev.antipode.Keys;
import dev.antipode.Mode;
import dev.antipode.OnPending;
import dev.antipode.OnReplicaOut;
import dev.antipode.Policy;
import dev.antipode.Trust;
import dev.antipode.internal.base.Kind;
import dev.antipode.internal.model.WireForm;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.function.UnaryOperator;

/** Every setting of the process: its variable, what it may be, and its default (CONF-9). */
public enum Setting {
  /** What barriers do. */
  MODE(Kind.oneOf((Object[]) Mode.values()), Mode.ENFORCE),
  /** This region's name. */
  REGION(Kind.text(), ""),
  /** Deadline of a barrier. */
  TIMEOUT("TIMEOUT_MS", Kind.duration(Units.MS, Duration.ZERO, Duration.ofHours(1)), Duration.ofSeconds(1)),
  /** What happens when the deadline has passed. */
  ON_TIMEOUT(Kind.oneOf(Policy.RAISE, Policy.PROCEED), Policy.RAISE),
  /** What happens where no proof is possible. */
  ON_UNPROVEN(Kind.oneOf(Policy.RAISE, Policy.PROCEED, Policy.AS_TIMEOUT), Policy.AS_TIMEOUT),
  /** What happens where a barrier had entries and could judge none. */
  ON_VACUOUS(Kind.oneOf(Policy.RAISE, Policy.PROCEED), Policy.PROCEED),
  /** Stores that this process will wait for. */
  STORES(Kind.names(), List.of()),
  /** The wait before a message goes back. */
  REDELIVER_DELAY("REDELIVER_DELAY_MS", Kind.duration(Units.MS, Duration.ZERO), Duration.ofSeconds(1)),
  /** What happens where a lineage leaves while a write is pending. */
  ON_PENDING(Kind.oneOf((Object[]) OnPending.values()), OnPending.MARK),
  /** Whose lineages are taken. */
  TRUST(Kind.oneOf((Object[]) Trust.values()), Trust.PRIVATE),
  /** Whether the outside can reach this service. */
  EDGE(Kind.flag(), false),
  /** Whether forwarding headers are judged. */
  FORWARDED(Kind.oneOf((Object[]) Forwarded.values()), Forwarded.CHECK),
  /** Whether a request without a peer came by a Unix socket. */
  TRUST_UNIX(Kind.flag(), false),
  /** Hosts that lineages may go to. */
  PEERS(Kind.names(), List.of()),
  /** The file of the seal keys. */
  KEYS_FILE(Kind.text(), ""),
  /** The seal keys themselves; in code alone. */
  KEYS(new Kind(text -> text, UnaryOperator.identity()), Keys.NONE),
  /** How long a seal of a request or response holds. */
  SEAL_TTL("SEAL_TTL_S", Kind.duration(Units.S, Duration.ofSeconds(1)), Duration.ofSeconds(300)),
  /** How long a seal of a message or value holds. */
  SEAL_REST_TTL("SEAL_REST_TTL_S", Kind.duration(Units.S, Duration.ZERO), Duration.ZERO),
  /** Size of an injected lineage, in bytes. */
  BUDGET_BYTES(Kind.count(Units.LEAST_BUDGET, WireForm.MAX_BYTES), 1024),
  /** Whether object keys travel as hashes. */
  HASH_KEYS(Kind.flag(), false),
  /** Whether each read through a shim transfers the lineage at rest. */
  AUTO_MERGE(Kind.flag(), false),
  /** Parked threads, a store and process. */
  MAX_WAITERS(Kind.count(0, Integer.MAX_VALUE), 1000),
  /** Parked futures and callbacks, a store and process. */
  MAX_TASKS(Kind.count(0, Integer.MAX_VALUE), 20_000),
  /** After how long a server that does not answer is left out. */
  REPLICA_OUT_AFTER("REPLICA_OUT_AFTER_MS", Kind.duration(Units.MS, Duration.ZERO), Duration.ofSeconds(2)),
  /** How old the connection to a server may grow that is asked. */
  RECONNECT("RECONNECT_MS", Kind.duration(Units.MS, Duration.ofMillis(100)), Duration.ofSeconds(5)),
  /** How long a server that discovery took away is named as left out. */
  LEFT_SERVER("LEFT_SERVER_MS", Kind.duration(Units.MS, Duration.ZERO), Duration.ofSeconds(60)),
  /** What a server that is left out means. */
  ON_REPLICA_OUT(Kind.oneOf((Object[]) OnReplicaOut.values()), OnReplicaOut.NAME),
  /** Fallbacks at once. */
  MAX_FALLBACKS(Kind.count(0, Integer.MAX_VALUE), 64),
  /** How long a watermark without a live push is believed. */
  FREE_PATH_TTL("FREE_PATH_TTL_MS", Kind.duration(Units.MS, Duration.ZERO), Duration.ofMillis(250)),
  /** Shortest poll interval. */
  POLL("POLL_MS", Kind.duration(Units.MS, Duration.ofNanos(100_000)), Duration.ofMillis(5)),
  /** Life of a user's session lineage. */
  SESSION_TTL("SESSION_TTL_S", Kind.duration(Units.S, Duration.ZERO), Duration.ofSeconds(300)),
  /** Folder for dry-run records. */
  RECORDS(Kind.text(), "antipode-records"),
  /** Size of a file of records before rotation, in MiB. */
  RECORDS_MAX_MIB(Kind.count(1, Integer.MAX_VALUE), 64),
  /** Bound of the folder of records, and of that of histories, in MiB. */
  RECORDS_FOLDER_MIB(Kind.count(1, Integer.MAX_VALUE), 1024),
  /** Share of reads that dry-run follows. */
  SAMPLE(Kind.share(), 0.01),
  /** Whether dry-run repeats reads to confirm that they were stale. */
  REPEAT_READS(Kind.flag(), true),
  /** Folder of the history recorder; empty is off. */
  HISTORY(Kind.text(), "");

  private final String variable;
  private final Kind kind;
  private final Object initial;

  /** What enum constants need before they are made. */
  private static final class Units {
    static final Duration MS = Duration.ofMillis(1);
    static final Duration S = Duration.ofSeconds(1);
    static final int LEAST_BUDGET = 16; // room for the empty lineage with its mark of incompleteness
  }

  Setting(Kind kind, Object initial) {
    this.variable = Kind.PREFIX + name();
    this.kind = kind;
    this.initial = initial;
  }

  Setting(String variable, Kind kind, Object initial) {
    this.variable = Kind.PREFIX + variable;
    this.kind = kind;
    this.initial = initial;
  }

  /** Its word in code, Spring and all languages: {@code on_timeout}. */
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** Its variable; empty for what is set in code alone. */
  public String variable() {
    return this == KEYS ? "" : variable;
  }

  /** Its value where nobody says another. */
  public Object initial() {
    return initial;
  }

  /**
   * What a text, of a variable or property, means.
   *
   * @param where what holds the text, for the message
   * @throws ConfigurationException for a text that cannot be read or is out of bounds
   */
  public Object read(String text, String where) {
    try {
      return kind.valueOf(text);
    } catch (IllegalArgumentException e) {
      throw new ConfigurationException("AP301", where + "='" + text + "': " + e.getMessage());
    }
  }

  /**
   * Checks a value that code has set.
   *
   * @throws ConfigurationException for one that is out of bounds
   */
  public Object check(Object value) {
    try {
      return kind.check().apply(value);
    } catch (IllegalArgumentException e) {
      throw new ConfigurationException("AP301", "configure(" + word() + "=" + value + "): " + e.getMessage());
    }
  }
}
