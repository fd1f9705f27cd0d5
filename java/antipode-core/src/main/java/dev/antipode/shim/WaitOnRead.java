package dev.antipode.shim;

import dev.antipode.BarrierException;
import dev.antipode.BarrierResult;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.BarrierUnprovenException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Policy;
import dev.antipode.Reading;
import dev.antipode.ServerResult;
import dev.antipode.Settings;
import dev.antipode.StoreResult;
import dev.antipode.UnprovenKind;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.engine.ServerWait;
import dev.antipode.internal.engine.Twins;
import dev.antipode.internal.store.Registry;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** What a read of a wrapped client waits for, and what becomes of one that waited in vain (BAR-50, BAR-51). */
public final class WaitOnRead {
  private static final Duration LAST_LOOK = Duration.ofMillis(200);

  private WaitOnRead() {}

  /**
   * Return what a read has to see first: the entries of its own store in what {@code reading} is after, or where {@code waits}
   * in what the scope holds by now. Empty for nothing, and where nothing waits: in dry-run and off (REC-12).
   *
   * @throws BarrierException where the lineage has entries under a misspelt name of the store, by the policies: the read is not
   *     to be sent then (BAR-51)
   */
  public static List<WriteId> required(RegisteredStore store, Reading reading, LineageScope scope, boolean waits) {
    Lineage lineage;
    if (reading != null && reading.after().isPresent()) {
      lineage = reading.after().get();
    } else if (waits && scope != null) {
      lineage = scope.held();
    } else {
      return List.of();
    }
    if (store.mode() != Mode.ENFORCE) {
      return List.of();
    }
    refuseMisspelt(store.name(), lineage);
    return lineage.ofStore(store.name());
  }

  private static void refuseMisspelt(String store, Lineage lineage) {
    Registry known = Registry.current();
    for (String name : lineage.stores()) {
      if (known.get(name) == null && Twins.of(name, known).contains(store)) {
        Visibility answer = Twins.misspelt(name, store);
        waitedInVain(store, store + ": " + answer.reason(), Duration.ZERO, answer);
      }
    }
  }

  /**
   * Waits at the read's own server for what it has to see first ({@link #required}).
   *
   * @param timeout tightened by the request's own deadline
   * @return whether all of it is there; not where the policies let the read go on without
   * @throws BarrierException what a barrier throws that waited in vain, by the policies
   */
  public static boolean waitFirst(
      Server server, Duration timeout, Reading reading, LineageScope scope, boolean waits) {
    RegisteredStore store = server.store();
    List<WriteId> ids = required(store, reading, scope, waits);
    if (ids.isEmpty()) {
      return false;
    }
    Duration patience = tightened(timeout, scope);
    long began = System.nanoTime();
    ServerResult answer = ServerWait.judged(server, Lineage.of(ids), patience);
    if (answer.verdict() == Verdict.VISIBLE) {
      return true;
    }
    String words = "%s: %s. The read waited for it %d ms".formatted(store.name(), answer.told(), patience.toMillis());
    inVain("", store.name(), words, Duration.ofNanos(System.nanoTime() - began), answer);
    return false;
  }

  /** Block until the server has shown these writes to its store; return the verdict, and enforce nothing. */
  public static Verdict verdict(Server server, List<WriteId> ids, Duration timeout) {
    return ServerWait.at(server, Lineage.of(ids), timeout);
  }

  /** The same without a thread: completes with the verdict on one of the engine's, where nothing may block. */
  public static CompletableFuture<Verdict> verdictAsync(Server server, List<WriteId> ids, Duration timeout) {
    return ServerWait.later(server, Lineage.of(ids), timeout);
  }

  /**
   * Return how long a question on the application's own connection may take: until the read's deadline, and the last one a
   * moment more (SHIM-47). A connection on which it takes longer is to be closed.
   */
  public static Duration questionTimeout(Duration left) {
    return left.compareTo(LAST_LOOK) > 0 ? left : LAST_LOOK;
  }

  /** Return the time that a read has to wait, tightened by the request's own deadline (BAR-28). */
  public static Duration tightened(Duration timeout, LineageScope scope) {
    if (scope == null || scope.deadline().isEmpty()) {
      return timeout;
    }
    Duration left = Duration.ofNanos(Math.max(scope.deadline().getAsLong() - System.nanoTime(), 0));
    return left.compareTo(timeout) < 0 ? left : timeout;
  }

  /**
   * Throws what the policies say of a read that waited in vain; returns where it goes on.
   *
   * @param words the store and server, where it is, and how long the read waited
   * @param answer the server's last one: what is unproven, and of which kind, is told from it (OBS-15)
   * @throws BarrierException by the policies of the process: a read gives no message back by itself (BAR-42)
   */
  public static void waitedInVain(String store, String words, Duration waited, Visibility answer) {
    boolean isUnproven = answer.isUnproven() || answer.unknownEpoch();
    UnprovenKind kind = answer.unknownEpoch() ? UnprovenKind.HISTORY : answer.kind();
    Verdict verdict = isUnproven ? Verdict.UNPROVEN : Verdict.TIMED_OUT;
    inVain("", store, words, waited, new ServerResult("", verdict, answer.reason(), false, kind));
  }

  /** Throws likewise where what is read is of a moment that is past: no wait could help, and that proves nothing (SHIM-48). */
  public static void isPast(String store, String words) {
    ServerResult answer = new ServerResult("", Verdict.UNPROVEN, words, false, UnprovenKind.OTHER);
    inVain("AP514", store, words, Duration.ZERO, answer);
  }

  /** {@code ownCode} is that of the words; empty for the verdict's own. */
  private static void inVain(String ownCode, String store, String words, Duration waited, ServerResult answer) {
    boolean isUnproven = answer.verdict() == Verdict.UNPROVEN;
    Settings now = ProcessSettings.inForce();
    Policy policy = isUnproven && now.onUnproven() != Policy.AS_TIMEOUT ? now.onUnproven() : now.onTimeout();
    if (policy == Policy.PROCEED) {
      return;
    }
    String told = words + " (wait on read)";
    List<ServerResult> servers = answer.address().isEmpty() ? List.of() : List.of(answer);
    StoreResult judged = new StoreResult(answer.verdict(), told, waited, servers, answer.kind());
    BarrierResult result =
        new BarrierResult.Builder(false).waited(waited).judge(() -> Map.of(store, judged)).build();
    String code = ownCode.isEmpty() ? judged.code() : ownCode;
    throw isUnproven ? new BarrierUnprovenException(code, told, result) : new BarrierTimeoutException(code, told, result);
  }
}
