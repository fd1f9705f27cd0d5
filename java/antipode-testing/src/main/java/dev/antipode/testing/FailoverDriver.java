package dev.antipode.testing;

import java.util.List;
import java.util.random.RandomGenerator;

/**
 * One run's servers of a store, in the words of the failover fuzzer (EPOCH-27). Closing it ends the servers.
 *
 * <p>It is begun in a registry of its own, and wraps a client at every server then, under {@link #name}, with all servers
 * as replicas. What is done to servers may return before it has taken effect, unless it says otherwise: the fuzzer wants
 * the states in between.
 */
public interface FailoverDriver extends AutoCloseable {
  /** Starts the servers and wraps the clients. */
  void begin();

  @Override
  void close();

  /** The store's logical name. */
  default String name() {
    return "fuzz";
  }

  /** All servers, three at least. */
  List<String> servers();

  /** The server that takes writes now. */
  String primary();

  /** The servers that follow it now; an old primary does not until {@link #rejoin}. */
  List<String> replicas();

  /** The server's address as the shim gives it, or a part of it that no other server's has. */
  String address(String server);

  // Data

  /** Whether a server has a value. */
  enum ValueCheck {
    /** It has. */
    YES,
    /** It has not. */
    NO,
    /** It cannot be asked. */
    UNKNOWN
  }

  /** Writes by the wrapped client of a server, in the current scope. */
  void write(String server, String key, String value);

  /** Whether a server has the value now, asked without Antipode. Called by several threads at once. */
  ValueCheck shows(String server, String key, String value);

  /**
   * Names which data a server has: its process and the history that it follows; null while they are being replaced. A pass
   * is false only where this was the same before the wait and after the look: what is replaced in between is an exposure
   * that the page states (BAR-24).
   */
  Object history(String server);

  /** Gives marks the time that they have in real life: what is written so far is proved beyond its epoch. */
  void settleMarks();

  // Faults

  /** The replica's link is so slow from now on. */
  void lag(String replica, int milliseconds);

  /** The replica's link carries nothing, in one of the ways in which links fail, until {@link #heal}. */
  void cut(String replica, RandomGenerator chance);

  /** It carries again; with {@code wait} it returns when data flow. */
  void heal(String replica, boolean wait);

  /** Kills a replica and starts it again. {@code write} may be called in between, so that it is behind then. */
  void restartReplica(String replica, Runnable write, boolean wait);

  /**
   * The replica becomes the primary and the other replicas follow it; returns when it takes writes.
   *
   * @param lost null: what is on its way arrives first. Else, once nothing of the old primary's leaves any more, it is
   *     called and writes there; what it wrote never arrives anywhere.
   */
  void promote(String replica, Runnable lost);

  /** A server that follows nobody, or the wrong one, follows the primary, giving up what that has not got. */
  void rejoin(String server, boolean wait);

  /** Whether {@link #crashPrimary} is there. */
  default boolean mayCrashPrimary() {
    return false;
  }

  /** The primary ends and starts again with less than it had: what {@code write} writes in between is lost there. */
  default void crashPrimary(Runnable write) {
    throw new UnsupportedOperationException();
  }

  /** The end: links carry without lag, every server follows the primary. */
  void calm();

  /** Returns when every server has what the primary has, marks included. */
  void waitCaughtUp();
}
