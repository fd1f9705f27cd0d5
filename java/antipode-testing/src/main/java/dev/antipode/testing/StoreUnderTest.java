package dev.antipode.testing;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.Verdict;
import dev.antipode.internal.store.Registry;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.RegisteredStore;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * What a store gives the conformance kit: a few primitives over two regions of real servers (SHIM-18, SHIM-33).
 *
 * <p>A shim's tests hold one subclass, and one test class that names it; every case comes with that:
 *
 * <pre>{@code
 * class MyStoreConformanceTest extends ShimConformance {
 *   protected StoreUnderTest underTest() { return new MyStoreUnderTest(); }
 * }
 * }</pre>
 *
 * <p>A primitive that is not given throws {@link NotPossible}, which fails the cases that need it. Such cases go into
 * {@link #exceptions}, each with its reason; a listed case that passes fails, so that the list cannot go stale. Cases
 * that a capability of the shim excludes are skipped, and say so.
 *
 * <p>Servers are named by texts; values and keys are short ASCII texts. The primary takes the writes (region A, at
 * first); {@link #replicas} are those that readers of region B may use. All clients of one {@link #begin} join one store
 * of this process, called {@link #name}.
 */
public abstract class StoreUnderTest {
  private static final AtomicInteger NUMBERS = new AtomicInteger();

  /** A store under test. */
  protected StoreUnderTest() {}

  /** What the shim declares. */
  public abstract Capabilities capabilities();

  /** Cases that this store cannot pass, each with its reason, as on the store's page. */
  public Map<String, String> exceptions() {
    return Map.of();
  }

  /** The store's logical name. */
  public String name() {
    return "under-test";
  }

  /** Within which what has to come true does, on a loaded machine. */
  public Duration patience() {
    return Duration.ofSeconds(20);
  }

  /** What a barrier is given which must not pass. */
  public Duration brief() {
    return Duration.ofMillis(300);
  }

  /** Past its deadline by this, a barrier counts as hanging, on a loaded machine. */
  public Duration slack() {
    return Duration.ofSeconds(5);
  }

  /** What the error or log line must hold where rights are missing: the grant (write_without_rights). */
  public String rightsCure() {
    return "";
  }

  /** What the error must hold where a topology is refused (wrap_unfit). */
  public String unfitCure() {
    return "";
  }

  // Always needed

  /** The server that takes writes now. */
  public abstract String primary();

  /**
   * The servers that readers of region B use, and that {@link #begin} lists as replicas; one at least, two for most
   * cases, the one with the least lag first. The same all the time: after a promotion one of them is the primary.
   */
  public abstract List<String> replicas();

  /** A case begins, in a registry of its own: wraps a client at every server, with the replicas of region B. */
  public abstract void begin();

  /**
   * A case has ended: links are healed, lags as at first, clients closed.
   *
   * @param spoiled the case promoted, restarted or re-pointed servers: the first order is to be restored
   */
  public abstract void recover(boolean spoiled);

  /** Writes by the wrapped client at the primary, in the current scope. Called by several threads at once. */
  public abstract void write(String key, String value);

  /**
   * What a server has now, without Antipode; null where it has nothing. The truth that barriers are held to. For a
   * queue: the value if the message has arrived there.
   */
  public abstract String look(String key, String at);

  // Where the store keeps values

  /** Reads by the wrapped client of a server, in the current scope and reading block. */
  public String read(String key, String at) {
    throw new NotPossible("read");
  }

  /** Deletes by the wrapped client at the primary. */
  public void delete(String key) {
    throw new NotPossible("delete");
  }

  /** Writes at the primary without Antipode, as an old service would. */
  public void rawWrite(String key, String value) {
    throw new NotPossible("rawWrite");
  }

  /** A wrapped operation that may write and changes nothing: the deletion of what is not there. */
  public void writeNothing() {
    throw new NotPossible("writeNothing");
  }

  /** An open transaction of the wrapped client at the primary. */
  public interface Transaction {
    /** Reads inside the transaction. */
    void read(String key);

    /** Writes inside the transaction. */
    void write(String key, String value);
  }

  /** What is done inside a transaction. */
  @FunctionalInterface
  public interface TransactionBody {
    /** Works; what it throws rolls the transaction back, and is thrown on. */
    void run(Transaction transaction);
  }

  /** A transaction of the wrapped client: commits when {@code work} returns, rolls back where it throws. */
  public void transaction(TransactionBody work) {
    throw new NotPossible("transaction");
  }

  /**
   * Return ways to commit a write inside what the client takes for an open transaction, each by its name. A way writes the value
   * under the key by the wrapped client at the primary, commits in a manner that leaves a transaction open (a text of several
   * statements, a procedure, {@code COMMIT AND CHAIN}), and rolls that back.
   */
  public Map<String, BiConsumer<String, String>> commitsInside() {
    throw new NotPossible("commitsInside");
  }

  // More clients

  /**
   * Wraps another client of a server under {@link #name}; it ends with the case.
   *
   * @param replicas the servers that its wrap names; null: none
   */
  public Object wrapClient(String server, List<String> replicas, boolean waitOnRead) {
    throw new NotPossible("wrapClient");
  }

  /**
   * Return ways to read a key's value by a client of {@link #wrapClient}, each by its name: the usual one, and those in which a
   * shim cannot be sure that something is read (functions, scripts, texts of several statements). They throw what the read does.
   */
  public Map<String, Function<String, Object>> reads(Object client) {
    throw new NotPossible("reads");
  }

  /** What shows a key as it was when it was opened. */
  public interface PastMoment extends AutoCloseable {
    /** Reads from it. */
    Object fetch();

    @Override
    void close();
  }

  /** Opens, by a client of {@link #wrapClient}, what shows the key as it is now: a cursor, a snapshot, a result in parts. */
  public PastMoment pastMoment(Object client, String key) {
    throw new NotPossible("pastMoment");
  }

  /**
   * Registers {@link #name} with one address alone, which leads to this server. What it returns makes the address lead to another
   * one from then on; open connections stay where they are. It ends with the case.
   */
  public Consumer<String> listMoving(String server) {
    throw new NotPossible("listMoving");
  }

  /**
   * Wraps a client of one server under {@link #name}, which names no servers and is not used; null where a client connects when
   * it is made.
   */
  public Object wrapUnused(String server) {
    throw new NotPossible("wrapUnused");
  }

  // Links and servers

  /** From now on writes reach this replica so much later. */
  public void setLag(String replica, Duration lag) {
    throw new NotPossible("setLag");
  }

  /** Nothing reaches this replica any more, and it still answers, until {@link #heal}. */
  public void partition(String replica) {
    throw new NotPossible("partition");
  }

  /** The link to this replica carries again. Need not wait until it has caught up. */
  public void heal(String replica) {
    throw new NotPossible("heal");
  }

  /** This server does not answer any more (SIGSTOP), until {@link #thaw}. */
  public void freeze(String server) {
    throw new NotPossible("freeze");
  }

  /** It answers again. */
  public void thaw(String server) {
    throw new NotPossible("thaw");
  }

  /** The server's process ends and starts again with what it had; returns when it answers and data flow. */
  public void restart(String server) {
    throw new NotPossible("restart");
  }

  /** The replica follows another server from now on; returns when data flow. */
  public void repoint(String replica, String source) {
    throw new NotPossible("repoint");
  }

  /**
   * The replica becomes the primary, and the other replicas follow it, the old primary too where it is one of them;
   * returns when data flow again. {@link #primary} and {@link #write} go to the new primary afterwards.
   *
   * @param lost null: whatever was written arrives first. Else, once nothing of the primary's leaves any more, it is
   *     called and writes by {@link #write}; what it wrote never arrives anywhere.
   */
  public void promote(String replica, Runnable lost) {
    throw new NotPossible("promote");
  }

  /**
   * Returns when marks in the store prove these writes beyond the present epoch: a second after the last write. Only for
   * stores with marks in band.
   *
   * @throws AssertionError where it takes longer than {@link #patience}
   */
  public void waitMarked(Lineage lineage) {
    if (capabilities().marks() == Capabilities.Marks.IN_BAND) {
      throw new NotPossible("waitMarked");
    }
  }

  // Troubles

  /** Sends a wrapped write whose answer never comes; throws the client's own error. Leaves the store usable. */
  public void writeWithUnknownOutcome(String key, String value) {
    throw new NotPossible("writeWithUnknownOutcome");
  }

  /** Sends a wrapped write that the server refuses; throws the client's own error. */
  public void writeRefused(String key) {
    throw new NotPossible("writeRefused");
  }

  /**
   * Wraps a client whose user may write but lacks a right that Antipode needs, and writes by it. Either throws
   * UnfitStoreException with {@link #rightsCure} in it, or writes, and logs that.
   */
  public void writeWithoutRights(String key, String value) {
    throw new NotPossible("writeWithoutRights");
  }

  /** Wraps a client in a topology in which positions or versions lie; has to throw UnfitStoreException. */
  public void wrapUnfit() {
    throw new NotPossible("wrapUnfit");
  }

  // What the cases use

  /** The replica with the least lag. */
  public final String near() {
    return replicas().get(0);
  }

  /** Another replica, with more lag. */
  public final String far() {
    if (replicas().size() < 2) {
      throw new NotPossible("second replica");
    }
    return replicas().get(replicas().size() - 1);
  }

  /** A key that nobody has used. */
  public final String newKey(String word) {
    return "kit-" + word + "-" + NUMBERS.incrementAndGet() + "-" + Long.toHexString(System.nanoTime());
  }

  /** A key that nobody has used. */
  public final String newKey() {
    return newKey("key");
  }

  /** Writes in a scope of its own; the lineage that it left. */
  public final Lineage written(String key, String value) {
    try (LineageScope opened = Antipode.scope()) {
      write(key, value);
      return opened.lineage();
    }
  }

  /** Writes to a new key in a scope of its own; the lineage that it left. */
  public final Lineage written() {
    return written(newKey(), "v");
  }

  /** A barrier on this store that throws for no verdict; fails where it takes longer than its deadline. */
  public final BarrierResult judge(Lineage lineage, Duration timeout) {
    long began = System.nanoTime();
    BarrierResult result = Antipode.barrier(judging(lineage, timeout));
    Duration took = Duration.ofNanos(System.nanoTime() - began);
    if (took.compareTo(timeout.plus(slack())) >= 0) {
      throw new AssertionError("a hang: " + took + " with a deadline of " + timeout);
    }
    return result;
  }

  /** The options of such a barrier. */
  public final BarrierOptions judging(Lineage lineage, Duration timeout) {
    return BarrierOptions.defaults()
        .lineage(lineage)
        .timeout(timeout)
        .stores(name())
        .onTimeout(Policy.PROCEED)
        .onUnproven(Policy.PROCEED);
  }

  /** Such a barrier, with all patience. */
  public final BarrierResult judge(Lineage lineage) {
    return judge(lineage, patience());
  }

  /** The verdict of such a barrier. */
  public final Verdict verdict(Lineage lineage, Duration timeout) {
    return judge(lineage, timeout).store(name()).verdict();
  }

  /** Whether these servers (all replicas, where none is named) have this value now. */
  public final boolean shows(String key, String value, String... servers) {
    List<String> asked = servers.length == 0 ? replicas() : List.of(servers);
    return asked.stream().allMatch(server -> java.util.Objects.equals(look(key, server), value));
  }

  /** The store as this process has it. */
  public final RegisteredStore registered() {
    return Registry.current().need(name());
  }

  /** Waits for a condition, with {@link #patience}. */
  public final void until(BooleanSupplier condition, String what) {
    long deadline = System.nanoTime() + patience().toNanos();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() > deadline) {
        throw new AssertionError("in vain: " + what);
      }
      try {
        Thread.sleep(5);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        throw new AssertionError("interrupted: " + what, interrupted);
      }
    }
  }
}
