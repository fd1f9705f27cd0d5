package dev.antipode.postgresql;

import dev.antipode.observer.Observers;
import dev.antipode.postgresql.PositionQuery.Answers;
import dev.antipode.shim.Logs;
import java.io.IOException;
import java.sql.SQLException;
import org.postgresql.core.BaseConnection;

/** What a server allows, asked when a client is wrapped: rights, settings, a pooler before it (SHIM-3). */
final class Fitness {
  private Fitness() {}

  /**
   * Why positions from a connection's server would prove nothing; empty where they do. What makes proofs dear is logged.
   *
   * @param relaxed whether a server may lose in a crash what it has: the operator says that it is rebuilt then
   * @throws SQLException where the server does not answer
   */
  static String unfit(String store, Target target, BaseConnection connection, boolean relaxed) throws SQLException {
    Answers answers = PositionQuery.ask(connection, Questions.FITNESS);
    String[] row = answers.lastRow();
    if (row == null) {
      throw answers.error() != null ? answers.error() : new SQLException("no answer");
    }
    boolean recovering = row[0].equals("t");
    if (!recovering && "off".equals(row[2])) {
      Logs.warn(
          "AP509",
          "async " + store,
          store + ": " + target.address() + " commits asynchronously (synchronous_commit = off): each recorded write is"
              + " flushed by a small commit behind it. Set it on, or async_commits='incomplete'");
    }
    if (!"t".equals(row[6])) {
      String words = noTable(store, row[5]);
      Observers.events().onMarksMissing(store, target.address() + ": " + words);
      Logs.warn("AP508", "marks " + store + " " + target.address(), store + ": " + words);
    }
    int backend = Integer.parseInt(row[1]);
    if (backend != connection.getBackendPID()) {
      String mode = poolerMode(target);
      if (!mode.equals("session")) {
        return target.address() + " is reached through a pooler in " + mode + " mode: a statement and the question for"
            + " its position may go to different servers. Connect to the server, or set pool_mode = session for this"
            + " database";
      }
    }
    if ("minimal".equals(row[3])) {
      return target.address() + " has wal_level = minimal: no standby can follow it. Set wal_level = replica, and"
          + " restart it";
    }
    String setting = relaxedSetting(row[7], row[8]);
    return setting.isEmpty() || relaxed ? "" : target.address() + " " + notDurable(setting);
  }

  /** Return which of the two settings is off; empty where none is. */
  static String relaxedSetting(String fsync, String fullPageWrites) {
    return "off".equals(fsync) ? "fsync" : "off".equals(fullPageWrites) ? "full_page_writes" : "";
  }

  static String notDurable(String setting) {
    return "has " + setting + " = off: after a crash it may say that it has what it lost. Set " + setting + " = on, or, where a"
        + " server that crashed is rebuilt before it serves readers, say so: options.extra(RELAXED_DURABILITY, true)";
  }

  static String noTable(String store, String user) {
    return "there is no table of epochs that its user may use: after a failover its positions are unproven. Run: antipode"
        + " init " + store + " --at URL-OF-THE-PRIMARY --user " + user + " --run";
  }

  /** The mode of the pooler between: whether a connection keeps its server process between transactions. */
  private static String poolerMode(Target target) {
    try (Session first = target.openSimple(1000); Session second = target.openSimple(1000)) {
      String own = first.row("SELECT pg_backend_pid()")[0];
      try {
        second.execute("BEGIN");
      } catch (Session.RefusedException refused) {
        return "statement"; // which takes no transactions
      }
      String taken = second.row("SELECT pg_backend_pid()")[0];
      // In transaction mode the first one has given its process back, and gets another while that one is in use.
      String again = first.row("SELECT pg_backend_pid()")[0];
      second.execute("COMMIT");
      return !taken.equals(own) && again.equals(own) ? "session" : "transaction";
    } catch (IOException | Session.RefusedException error) {
      return "an unknown";
    }
  }
}
