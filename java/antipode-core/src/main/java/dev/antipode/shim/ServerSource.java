package dev.antipode.shim;

import java.util.Collection;
import java.util.Map;
import java.util.function.Consumer;

/** What is to name the servers of a wrapped client, as its shim sees it: {@link RegisteredStore#expectServer} (BAR-52). */
public interface ServerSource {
  /** The servers that it has named, by address. */
  Map<String, ? extends Server> named();

  /**
   * Takes an answer of the shim's: whoever waits here goes on at each of these servers. False for an empty one. Servers of a
   * client that are known once, join those that are known already.
   */
  boolean found(Collection<?> targets);

  /**
   * Looks from now on at the connections that the client holds, whenever its servers are named: they lead where they were
   * opened, whatever the client says by now (BAR-68).
   *
   * @param meeting lets the servers join to which the connections of this client lead; at hand and without a question, on
   *     whatever thread a barrier is called. It keeps no client alive
   */
  ServerSource watchHeld(Consumer<Object> meeting);
}
