package dev.antipode.internal.store;

import dev.antipode.ConfigurationException;
import dev.antipode.Mode;
import dev.antipode.StoreOptions;
import dev.antipode.UnknownStoreException;
import dev.antipode.internal.base.NearestName;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.observer.Observers;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Shim;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;

/** The stores of this process, by name. */
public final class Registry {
  private static final AtomicLong GENERATIONS = new AtomicLong();
  private static volatile Registry current = new Registry();

  private volatile Map<String, RegisteredStore> stores = Map.of(); // replaced as one value
  private volatile long generation = GENERATIONS.incrementAndGet();

  /** A registry without stores. */
  public Registry() {}

  /** The registry in force. */
  public static Registry current() {
    return current;
  }

  /** Puts another registry in force and returns the one before (tests). */
  public static synchronized Registry replace(Registry other) {
    Registry before = current;
    current = other;
    return before;
  }

  /** The store of this name; several wraps under one name join one store (BAR-22). */
  public RegisteredStore join(StoreOptions options, Supplier<? extends Shim> make) {
    RegisteredStore store = joined(options, make.get());
    store.listReplicas(options, replicasInEnvironment(options.name()));
    return store;
  }

  private synchronized RegisteredStore joined(StoreOptions options, Shim shim) {
    RegisteredStore store = stores.get(options.name());
    if (store == null) {
      store = StoreFactory.found().make(options.name(), shim, options);
      StoreAccess.serve(shim, store);
      Map<String, RegisteredStore> more = new LinkedHashMap<>(stores);
      more.put(store.name(), store);
      stores = more;
      generation = GENERATIONS.incrementAndGet();
      Observers.events().onStoreJoined(store);
    } else if (store.shim().getClass() != shim.getClass()) {
      throw new ConfigurationException(
          "AP503",
          "store \"%s\" is registered as %s already; it cannot be %s, too. Give one of them another name."
              .formatted(store.name(), store.kind(), shim.kind()));
    } else {
      Mode before = store.options().mode();
      StoreAccess.join(store, options);
      if (store.options().mode() != before) {
        generation = GENERATIONS.incrementAndGet(); // a pass that is kept may be without this store
      }
    }
    return store;
  }

  /** What {@code ANTIPODE_STORE_<NAME>_REPLICAS} says, or null. */
  public static List<String> replicasInEnvironment(String store) {
    return ProcessSettings.ofStore(store).replicas().orElse(null);
  }

  /** Another number whenever a store joins, or has another mode; never the same in two registries. */
  public long generation() {
    return generation;
  }

  /** The store of this name, or null. */
  public RegisteredStore get(String name) {
    return stores.get(name);
  }

  /** Every registered store. */
  public Collection<RegisteredStore> all() {
    return stores.values();
  }

  /** The names of the registered stores, in the order in which they joined. */
  public List<String> names() {
    return List.copyOf(stores.keySet());
  }

  /**
   * The store of this name.
   *
   * @throws UnknownStoreException with the nearest name where there is none (BAR-5)
   */
  public RegisteredStore need(String name) {
    RegisteredStore store = stores.get(name);
    if (store == null) {
      throw new UnknownStoreException(unknown(name));
    }
    return store;
  }

  private String unknown(String name) {
    List<String> known = names();
    String near = NearestName.of(name, known);
    String hint = near == null ? "\n  If another" : "\n  Did you mean \"" + near + "\"? If another";
    return ("barrier(stores(\"%s\")): no such store in this process; registered: %s.%s service owns it, leave it out, or "
            + "register it here.")
        .formatted(name, known.isEmpty() ? "none" : String.join(", ", known), hint);
  }
}
