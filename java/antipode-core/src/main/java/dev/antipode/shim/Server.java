package dev.antipode.shim;

import dev.antipode.observer.ObservedServer;
import java.time.Duration;
import java.util.Map;

/** One server of a store, as its shim sees it: how it is reached, and where its proofs go (BAR-33). */
public interface Server extends ObservedServer {
  /** The store that it belongs to. */
  RegisteredStore store();

  /** Its name in results and errors, as {@link Shim#address} gave it. */
  @Override
  String address();

  /** How the shim reaches it: the client or URL that it was registered by. */
  Object target();

  /** The shim's own state of its connection to this server; null where there is none. */
  Object session();

  /** Keeps the shim's own state. Only the thread that asks the server may set it. */
  void session(Object session);

  /** How long one question may take; then the shim has to throw. */
  Duration askTimeout();

  /**
   * What one reply proved: this instance, in this epoch now, has applied each epoch up to the counter (unsigned).
   *
   * <p>Called by {@link Shim#visible} and {@link Shim#await} of positional shims. Proofs of another instance or epoch
   * are dropped, and all of them where the server went back (BAR-33).
   */
  void applied(String instance, String epoch, Map<String, Long> positions);

  /**
   * Note that a question begins: the age of what its reply proves counts from now (BAR-34). The engine says so before each
   * question; a {@link Shim#await} that asks several times says it for each.
   */
  void beginQuestion();

  /** Drops every proof: the server's data may be others (a push of a full resynchronisation). From any thread. */
  void reset();

  /** The store's push: something was applied at this server. From any thread. */
  void changed();

  /** The push channel broke off: the server has to be asked anew. From any thread. */
  void broken(Exception error);

  /** Whether a barrier, or a read, waits for a write here now: not one that only looks or records, and no prober. */
  boolean awaited();

  /**
   * Sleeps, in a {@link Shim#await}, until so long before the nearest position that somebody waits for should be there, or until
   * somebody new waits; no longer than fifty milliseconds, and not at all where nothing tells (BAR-66).
   */
  void rest(Duration lead);

  /** Whether somebody new waits: a blocking wait answers now, and is called anew with what is wanted then. */
  boolean interrupted();
}
