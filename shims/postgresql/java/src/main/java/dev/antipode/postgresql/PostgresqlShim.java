package dev.antipode.postgresql;

import dev.antipode.Ordered;
import dev.antipode.Rest;
import dev.antipode.StoreOptions;
import dev.antipode.UnprovenKind;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.postgresql.Look.WantedPosition;
import dev.antipode.postgresql.Session.RefusedException;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Visibility;
import java.io.IOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import org.postgresql.core.BaseConnection;

/**
 * What knows PostgreSQL. Positions: epoch = system, timeline and its word; counter = place in the log. Judges at a server,
 * which it asks every millisecond while somebody waits, or, where it replays all the time, when a position should be there.
 */
public final class PostgresqlShim extends Shim {
  static final Set<String> SCHEMES = Set.of("postgresql", "postgres");

  private static final Capabilities CAPABILITIES = Capabilities.positions()
      .blockingWait(true)
      .tombstones(true)
      .rest(Rest.NATIVE)
      .marks(Capabilities.Marks.NATIVE);
  private static final long POLL = 1_000_000L;
  private static final Duration NEAR = Duration.ofMillis(5); // so long before a position is expected it is asked all the time

  /** By user and server address: why positions prove nothing; found out when a client was wrapped. */
  final Map<String, String> fitness = new ConcurrentHashMap<>();

  /** By user and address: what the database has that makes texts unsure. */
  private final Map<String, UnsureNames> unsure = new ConcurrentHashMap<>();

  private volatile Properties credentials = new Properties();

  /** Returns what the database has that makes texts unsure: it is asked again where that was ten seconds ago (SHIM-43). */
  UnsureNames unsureAt(String place, BaseConnection physical) throws SQLException {
    UnsureNames known = unsure.get(place);
    if (known == null || known.isOld()) {
      known = UnsureNames.of(PositionQuery.ask(physical, UnsureNames.QUESTION));
      unsure.put(place, known);
    }
    return known;
  }

  /** A shim that serves no store yet. */
  public PostgresqlShim() {}

  /** The user, password and TLS of the wrapped client: for replicas whose URL names none. */
  void credentials(Properties words) {
    credentials = words;
  }

  Properties credentials() {
    return credentials;
  }

  /** Return whether the operator says that a server that crashed is rebuilt before it serves readers (SHIM-45). */
  boolean isRelaxed() {
    return Boolean.TRUE.equals(store().options().extra(AntipodePostgres.RELAXED_DURABILITY));
  }

  @Override
  public String kind() {
    return "postgresql";
  }

  @Override
  public boolean notesReads() {
    return true;
  }

  @Override
  public Capabilities capabilities() {
    return CAPABILITIES;
  }

  @Override
  public Set<String> schemes() {
    return Set.of("postgresql", "postgres", "jdbc:postgresql");
  }

  @Override
  public String address(Object target) {
    return target(target).address();
  }

  private Target target(Object target) {
    return target instanceof Target known ? known : Target.of(String.valueOf(target), credentials);
  }

  @Override
  public List<Visibility> visible(List<WriteId> ids, Server server) throws IOException, RefusedException {
    if (Target.namesSeveral(server.address())) {
      return unfit(ids, server.address() + " leads to several servers: name them one by one");
    }
    Look look = look(server);
    if (!look.relaxed().isEmpty() && !isRelaxed()) {
      return unfit(ids, server.address() + " " + Fitness.notDurable(look.relaxed()));
    }
    ServerState seen = look.look(wanted(ids));
    List<Visibility> answers = judge(ids, seen);
    boolean isBad = answers.stream().anyMatch(one -> one.isUnproven() || one.unknownEpoch());
    if (isBad && look.readMarks()) {
      // An operator may have settled its epoch since the rows were read.
      seen = look.look(wanted(ids));
      answers = judge(ids, seen);
    }
    server.applied(look.instance(), seen.epoch(), seen.proved());
    return answers;
  }

  private static List<Visibility> unfit(List<WriteId> ids, String words) {
    return Collections.nCopies(ids.size(), Visibility.unproven(words, UnprovenKind.UNFIT));
  }

  /**
   * One poller a server: short statements, each with a snapshot of its own. A loop in one statement would hold its snapshot, and
   * a standby does not replay what conflicts with one.
   */
  @Override
  public List<Visibility> await(List<WriteId> ids, Server server, Duration timeout) throws IOException, RefusedException {
    long deadline = System.nanoTime() + timeout.toNanos();
    while (true) {
      server.beginQuestion();
      List<Visibility> answers = visible(ids, server);
      boolean isOver = deadline - System.nanoTime() <= POLL
          || server.interrupted()
          || answers.stream().anyMatch(one -> one.verdict() != Verdict.NOT_YET);
      if (isOver) {
        return answers;
      }
      server.rest(NEAR);
      LockSupport.parkNanos(this, POLL);
    }
  }

  private static List<Visibility> judge(List<WriteId> ids, ServerState seen) {
    List<Visibility> answers = new ArrayList<>(ids.size());
    for (WriteId id : ids) {
      answers.add(
          id.isPosition() && id.version() instanceof Ordered position
              ? CommitJudge.judge(position.epoch(), position.counter(), seen)
              : Visibility.unproven(id + " is no PostgreSQL position"));
    }
    return answers;
  }

  private static List<WantedPosition> wanted(List<WriteId> ids) {
    List<WantedPosition> found = new ArrayList<>(ids.size());
    for (WriteId id : ids) {
      Epoch epoch = id.version() instanceof Ordered version ? Epoch.of(version.epoch()) : null;
      if (epoch != null) {
        Ordered version = (Ordered) id.version();
        found.add(new WantedPosition(epoch.timeline(), version.counter(), epoch.word()));
      }
    }
    return found;
  }

  private Look look(Server server) throws IOException, RefusedException {
    if (server.session() instanceof Look look) {
      look.timeout(millis(server));
      return look;
    }
    Look look = open(server);
    server.session(look);
    return look;
  }

  private Look open(Server server) throws IOException, RefusedException {
    StoreOptions options = store().options();
    boolean unique = Boolean.TRUE.equals(options.extra(AntipodePostgres.UNIQUE_TIMELINES));
    return new Look(target(server.target()), store().name(), millis(server), unique);
  }

  private static int millis(Server server) {
    return (int) Math.max(1, server.askTimeout().toMillis());
  }

  @Override
  public boolean renews() {
    return true;
  }

  @Override
  public Look renew(Server server) throws IOException, RefusedException {
    if (server.session() instanceof Look look && look.isBorrowed()) {
      throw new IOException("the application's pool is to lend one connection at most");
    }
    return open(server);
  }

  @Override
  public void close(Server server) {
    if (server.session() instanceof Look look) {
      look.close();
    }
    server.session(null);
  }
}
