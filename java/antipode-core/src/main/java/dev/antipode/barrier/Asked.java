package dev.antipode.barrier;

import dev.antipode.WriteId;
import dev.antipode.shim.RegisteredStore;
import java.util.List;

/**
 * One store that a barrier asks for.
 *
 * @param store the store
 * @param ids the writes to it
 * @param servers the servers that a pass has to speak of
 * @param generation of the store's set of servers, before these were named
 * @param gone addresses that discovery took away of late (BAR-54)
 */
record Asked(
    RegisteredStore store, List<WriteId> ids, List<ServerEngine> servers, int generation, List<String> gone) {
  /** The same for given servers, of which no free path is kept. */
  Asked(RegisteredStore store, List<WriteId> ids, List<ServerEngine> servers) {
    this(store, ids, servers, 0, List.of());
  }
}
