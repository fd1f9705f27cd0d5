package dev.antipode.internal.engine;

import dev.antipode.WriteId;
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
record StoreRequest(
    RegionStore store, List<WriteId> ids, List<ServerEngine> servers, int generation, List<String> gone) {
  private static final int MOST_TRIES = 100;

  /** Return a store with the servers that are known now; {@code isOwn}: those of wrapped clients alone. */
  static StoreRequest of(RegionStore store, List<WriteId> ids, boolean isOwn) {
    for (int left = MOST_TRIES; ; left--) {
      int generation = store.generation(); // before the servers: one that joins meanwhile is another generation's
      StoreRequest asked = new StoreRequest(store, ids, store.servers(isOwn), generation, store.gone(isOwn));
      if (store.generation() == generation || left == 0) { // else who left may be in both, and who joined in neither
        return asked;
      }
    }
  }

  /** The same for given servers, of which no free path is kept. */
  StoreRequest(RegionStore store, List<WriteId> ids, List<ServerEngine> servers) {
    this(store, ids, servers, 0, List.of());
  }
}
