package dev.antipode.internal.store;

import dev.antipode.StoreOptions;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Shim;
import java.util.function.BiConsumer;

/** What stores and shims give to the registry, and keep from everybody else. */
public final class StoreAccess {
  private static volatile BiConsumer<RegisteredStore, StoreOptions> join;
  private static volatile BiConsumer<Shim, RegisteredStore> serve;

  private StoreAccess() {}

  /** Called by {@link RegisteredStore} once, before there is any. */
  public static void giveJoin(BiConsumer<RegisteredStore, StoreOptions> joining) {
    join = joining;
  }

  /** Called by {@link Shim} once, before there is any. */
  public static void giveServe(BiConsumer<Shim, RegisteredStore> serving) {
    serve = serving;
  }

  /** Add what a later wrap says. */
  static void join(RegisteredStore store, StoreOptions later) {
    join.accept(store, later);
  }

  /** Tell a shim which store it serves. */
  static void serve(Shim shim, RegisteredStore store) {
    serve.accept(shim, store);
  }
}
