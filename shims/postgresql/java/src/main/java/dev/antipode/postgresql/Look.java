package dev.antipode.postgresql;

import dev.antipode.postgresql.ServerState.Branch;
import dev.antipode.postgresql.Session.RefusedException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * What is known of one server, over one connection of ours: how far it is, which timelines it came from, which rows of
 * epochs it shows. The position is asked for often and cheaply; the histories and rows only where they may have changed.
 */
final class Look implements AutoCloseable {
  /** A position that will be judged. */
  record WantedPosition(long timeline, long counter, String word) {}

  private static final String PLACE =
      "SELECT recovering, reached, timeline, system, " + Questions.STARTED + " FROM antipode.place()";

  // The same without the function: for roles that may see the receiver. Columns are computed from left to right.
  private static final String PLACE_BY_RIGHT = "SELECT pg_is_in_recovery(),"
      + " CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END::text,"
      + " CASE WHEN pg_is_in_recovery() THEN (SELECT received_tli FROM pg_stat_get_wal_receiver())"
      + "      ELSE ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::integer END,"
      + " (SELECT system_identifier::text FROM pg_control_system()), " + Questions.STARTED;
  private static final String HISTORIES = "SELECT timeline, history FROM antipode.histories()";
  private static final String HISTORIES_BY_RIGHT =
      "SELECT ('x' || left(name, 8))::bit(32)::integer, pg_read_file('pg_wal/' || name)"
          + " FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{8}\\.history$'"
          + " UNION ALL SELECT (SELECT timeline_id FROM pg_control_checkpoint()), NULL";
  private static final String ROWS = "SELECT system, timeline, word, counter FROM antipode.epochs";
  private static final String RIGHTS = "SELECT " + Questions.mayCall("place") + " AND " + Questions.mayCall("histories")
      + ", " + Questions.MAY_READ_EPOCHS
      + ", pg_has_role('pg_read_all_stats', 'USAGE') AND"
      + " (SELECT rolsuper OR pg_has_role('pg_read_server_files', 'USAGE') FROM pg_roles WHERE rolname = current_user),"
      + " (SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user), current_user::text, "
      + Questions.DURABLE;
  private static final long ROWS_NANOS = 100_000_000L;

  private final Target target;
  private final String store;
  private final boolean uniqueTimelines;
  private final Session session;
  private final boolean byFunction;
  private final boolean byRight;
  private final boolean byReplication;
  private final String user;
  private final String hidden;
  private final String relaxed;
  private final Map<Long, History> known = new TreeMap<>(Map.of(1L, History.of(1)));

  private Session replication;
  private int timeoutMillis;
  private boolean hasTable;
  private Map<Branch, String> words = Map.of();
  private Map<String, Long> settled = Map.of();
  private long rowsReadAt = System.nanoTime() - ROWS_NANOS;
  private boolean isNew = true; // no rows were read yet
  private volatile long looks;
  private volatile String life = "";

  /** Connects and asks for its rights. */
  Look(Target target, String store, int timeoutMillis, boolean uniqueTimelines) throws IOException, RefusedException {
    this.target = target;
    this.store = store;
    this.timeoutMillis = timeoutMillis;
    this.uniqueTimelines = uniqueTimelines;
    this.session = target.open(timeoutMillis);
    try {
      String[] rights = session.row(RIGHTS);
      byFunction = is(rights[0]);
      hasTable = is(rights[1]);
      byRight = is(rights[2]);
      byReplication = !byFunction && !byRight && is(rights[3]);
      user = rights[4];
      relaxed = Fitness.relaxedSetting(rights[5], rights[6]);
      hidden = byFunction || byRight || byReplication ? "" : noRight();
      session.prepare(byFunction ? PLACE : PLACE_BY_RIGHT);
    } catch (IOException | RefusedException | RuntimeException error) {
      session.close();
      throw error;
    }
  }

  private String noRight() {
    return user + " may not see which timeline the server follows. Run: antipode init " + store
        + " --at URL-OF-THE-PRIMARY --user " + user + " --run (or give it the attribute REPLICATION, and a line `host"
        + " replication` in pg_hba.conf)";
  }

  private static boolean is(String value) {
    return "t".equals(value);
  }

  void timeout(int millis) throws IOException {
    timeoutMillis = millis;
    session.timeout(millis);
    if (replication != null) {
      replication.timeout(millis);
    }
  }

  /** Return the setting by which the server may lose what it has (SHIM-45), as it was at our connecting; empty for none. */
  String relaxed() {
    return relaxed;
  }

  /** Return whether it asks by a connection of the application's pool. */
  boolean isBorrowed() {
    return session.isBorrowed();
  }

  /** Return how often it was asked how far it is (tests). */
  long looks() {
    return looks;
  }

  /** The server's life, as far as a connection sees it: when it was started. */
  String life() {
    return life;
  }

  /** The life of the server and of this connection to it. */
  String instance() {
    return life + "/" + session.backend();
  }

  /** Where the server is; {@code wanted} are positions of its own system that will be judged. */
  ServerState look(List<WantedPosition> wanted) throws IOException, RefusedException {
    looks = looks + 1; // by one thread
    String[] place = session.prepared();
    boolean recovering = is(place[0]);
    long at = place[1] == null ? 0 : Lsn.parse(place[1]);
    Long timeline = place[2] == null ? null : Long.valueOf(place[2]);
    long system = place[3] == null ? 0 : Long.parseUnsignedLong(place[3]);
    life = place[4];
    boolean fresh = false;
    for (WantedPosition one : wanted) {
      // The first ones name its epoch early: without a name nothing is predicted (BAR-66).
      boolean isDue = isNew || Long.compareUnsigned(at, one.counter()) >= 0;
      if (!fresh && !one.word().isEmpty() && isDue && !words.containsKey(new Branch(system, one.timeline()))) {
        readRows();
        fresh = true;
      }
    }
    List<History> histories = histories(system, timeline, recovering);
    return new ServerState(system, recovering, at, histories, words, settled, fresh, hidden, uniqueTimelines);
  }

  /** Reads the rows of epochs anew, at most so often; whether it did. */
  boolean readMarks() throws IOException, RefusedException {
    if (System.nanoTime() - rowsReadAt < ROWS_NANOS) {
      return false;
    }
    readRows();
    return true;
  }

  private void readRows() throws IOException, RefusedException {
    rowsReadAt = System.nanoTime();
    isNew = false;
    if (!hasTable) {
      hasTable = is(session.row(RIGHTS)[1]);
    }
    if (!hasTable) {
      return;
    }
    Map<Branch, String> foundWords = new HashMap<>();
    Map<String, Long> foundSettled = new HashMap<>();
    for (String[] row : session.rows(ROWS)) {
      Epoch epoch = new Epoch(Long.parseUnsignedLong(row[0]), Long.parseLong(row[1]), row[2]);
      long counter = Long.parseUnsignedLong(row[3]);
      if (counter != 0) {
        foundSettled.put(epoch.toString(), counter);
      } else {
        foundWords.put(new Branch(epoch.system(), epoch.timeline()), epoch.word());
      }
    }
    words = Map.copyOf(foundWords);
    settled = Map.copyOf(foundSettled);
  }

  // Which timelines

  private List<History> histories(long system, Long timeline, boolean recovering) throws IOException, RefusedException {
    if (!recovering) {
      return one(timeline);
    }
    if (!hidden.isEmpty()) {
      return List.of();
    }
    if (byReplication) {
      return one(replaying());
    }
    if (timeline != null) {
      // The receiver streams this timeline, so what is replayed lies on it, or on one that it came from.
      return one(timeline);
    }
    return possible(system);
  }

  private List<History> one(long timeline) throws IOException, RefusedException {
    if (!known.containsKey(timeline)) {
      readHistories();
    }
    History found = known.get(timeline);
    return found == null ? List.of() : List.of(found);
  }

  /** Reads the files that the server has; returns the timeline of its last checkpoint. */
  private long readHistories() throws IOException, RefusedException {
    if (byReplication) {
      long timeline = replaying();
      if (timeline > 1) {
        String text = replicating().row("TIMELINE_HISTORY " + timeline)[1];
        known.put(timeline, History.parse(timeline, text == null ? "" : text));
      }
      return timeline;
    }
    long checkpoint = 0;
    if (byFunction || byRight) {
      for (String[] row : session.rows(byFunction ? HISTORIES : HISTORIES_BY_RIGHT)) {
        long timeline = Long.parseLong(row[0]);
        if (row[1] == null) {
          checkpoint = timeline;
        } else {
          known.putIfAbsent(timeline, History.parse(timeline, row[1]));
        }
      }
    }
    return checkpoint;
  }

  /**
   * The receiver is down: what the server may be following, for it may replay from an archive. It is past its last
   * checkpoint and past every row that it shows, and knows the history of what it follows.
   */
  private List<History> possible(long system) throws IOException, RefusedException {
    long least = Math.max(readHistories(), 1);
    readRows();
    for (Branch branch : words.keySet()) {
      if (branch.system() == system) {
        least = Math.max(least, branch.timeline());
      }
    }
    List<History> found = new ArrayList<>();
    for (History history : known.values()) {
      if (history.timeline() == least || (history.timeline() > least && history.ends().containsKey(least))) {
        found.add(history);
      }
    }
    return found;
  }

  private long replaying() throws IOException, RefusedException {
    return Long.parseLong(replicating().row("IDENTIFY_SYSTEM")[1]);
  }

  private Session replicating() throws RefusedException {
    if (replication == null) {
      try {
        replication = target.openReplicating(timeoutMillis);
      } catch (IOException error) {
        throw new RefusedException(noRight() + " (" + error.getMessage() + ")", error);
      }
    }
    return replication;
  }

  /** Ends its connections; never throws. */
  @Override
  public void close() {
    session.close();
    if (replication != null) {
      replication.close();
    }
  }
}
