package dev.antipode.shim;

/**
 * A live push channel to one server. Its own thread calls {@link Server#changed} whenever something was applied there,
 * and {@link Server#broken} when the channel breaks off. A push is only a hint: what it lets pass is decided by a
 * question asked after it (SHIM-19).
 */
public interface Watch extends AutoCloseable {
  /** Ends the channel; never throws. */
  @Override
  void close();
}
