package dev.antipode.shim;

import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.internal.store.StoreAccess;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;

/**
 * What knows one kind of store (spec SHIM). It says what its store can do and answers one question; the core does
 * deadlines, parallel waits, polling, single flight and overload. One instance serves one named store of this process.
 *
 * <p>Shims are found by {@link java.util.ServiceLoader} ({@code META-INF/services/dev.antipode.shim.Shim}) and have a
 * constructor without parameters.
 *
 * <p>All methods that ask a server are called by the engine's one thread for that server, never concurrently for the
 * same server (but for {@link #renew}) and never in a request. They may block for {@link Server#askTimeout} at most, and
 * then throw.
 */
public abstract class Shim {
  private RegisteredStore store;

  static {
    StoreAccess.giveServe(Shim::serve);
  }

  /** Makes a shim that serves no store yet. */
  protected Shim() {}

  /** The kind of store: {@code redis}, {@code memory}. */
  public abstract String kind();

  /** What this kind of store can do. */
  public abstract Capabilities capabilities();

  /**
   * One answer a write, in order: visible, not yet and where the server is, or unproven and why. Never guesses.
   *
   * <p>{@code ids} may be empty: a sign of life is asked for. A positional shim calls {@link Server#applied} with what
   * the same reply proved, so that one question releases everybody up to there.
   *
   * @throws Exception what {@link #unreachable} knows means that the server is out of reach; anything else is the
   *     server's own answer, and makes the writes unproven with its words (BAR-13)
   */
  public abstract List<Visibility> visible(List<WriteId> ids, Server server) throws Exception;

  /**
   * Opens a push channel to a server ({@link Capabilities#push}).
   *
   * @throws UnsupportedOperationException where this very server cannot push: it is polled then
   * @throws Exception as {@link #visible} does
   */
  public Watch watch(Server server) throws Exception {
    throw new UnsupportedOperationException(kind() + " has no push");
  }

  /**
   * Like {@link #visible}, but blocks at the server up to {@code timeout} for the first of the writes ({@link
   * Capabilities#blockingWait}). One that can end early looks at {@link Server#interrupted}.
   *
   * @throws Exception as {@link #visible} does
   */
  public List<Visibility> await(List<WriteId> ids, Server server, Duration timeout) throws Exception {
    throw new UnsupportedOperationException(kind() + " has no blocking wait");
  }

  /** Gives up the connection to a server ({@link Server#session}); never throws. */
  public void close(Server server) {
    server.session(null);
  }

  /** The store is given up (tests): threads of the shim's own end, with what they had open. */
  public void forget() {}

  /** A name for the server behind a client or URL, for results and errors; without credentials. */
  public String address(Object target) {
    return target instanceof String text ? text : kind() + ":" + Integer.toHexString(System.identityHashCode(target));
  }

  /**
   * Return what names the servers of a client that goes to whichever has a role, as Sentinels know it; null for a client of
   * one server. It is asked now and again every 5 s while barriers come (BAR-52, BAR-53), on a thread of Antipode's own.
   */
  public Callable<? extends Collection<?>> naming(Object target) {
    return null;
  }

  /** The schemes of the URLs that this shim can reach servers by: {@code redis}, {@code rediss}. */
  public Set<String> schemes() {
    return Set.of();
  }

  /** Whether this error of the client means that the server is out of reach; anything else is the server's answer. */
  public boolean unreachable(Exception error) {
    return error instanceof IOException || error instanceof UncheckedIOException;
  }

  /**
   * Return whether the engine connects anew every {@code reconnect}: an address may lead to another
   * server by then (BAR-55). Not where what was seen on a connection is seen once, as at a tap.
   */
  public boolean reconnects() {
    return true;
  }

  /** Return whether {@link #renew} opens the next connection beside the one that answers (BAR-69). */
  public boolean renews() {
    return false;
  }

  /**
   * Open a connection to a server, and return what is to be {@link Server#session}; it is closed where nobody wants it any
   * more. Called on a thread of its own while the server is asked by the connection that is there, so it changes nothing of
   * the server or the shim.
   *
   * @throws Exception what opening throws: the connection that is there goes on answering
   */
  public AutoCloseable renew(Server server) throws Exception {
    throw new UnsupportedOperationException(kind() + " opens no connection beside another");
  }

  /** Return what an error that {@link #visible} threw says of why nothing is proved; not asked of {@link #unreachable} ones. */
  public UnprovenKind kindOf(Exception error) {
    return UnprovenKind.OTHER;
  }

  /**
   * For stores that neither push nor block: the shim itself spaces its questions, object by object, and {@link
   * #visible} answers between them from the last one. It is called so often while somebody waits, without back-off,
   * and counts its questions by itself. Zero where the core does all that.
   */
  public Duration ownPace() {
    return Duration.ZERO;
  }

  /** Whether its reads are told to a recorded history, with what each returned (HIST-31). */
  public boolean notesReads() {
    return false;
  }

  /** The store that it serves. */
  public final RegisteredStore store() {
    return store;
  }

  private void serve(RegisteredStore served) {
    store = served;
  }
}
