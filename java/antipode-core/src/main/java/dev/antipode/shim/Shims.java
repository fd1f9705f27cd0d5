package dev.antipode.shim;

import dev.antipode.ConfigurationException;
import dev.antipode.StoreOptions;
import dev.antipode.internal.base.NearestName;
import dev.antipode.internal.store.Registry;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.ServiceLoader;
import java.util.TreeSet;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/** How stores join this process: by a shim at hand, or by one that {@link ServiceLoader} finds. */
public final class Shims {
  private Shims() {}

  /**
   * Registers a store, or joins the one of that name: what every shim's {@code wrap} and {@code register} do.
   *
   * @throws ConfigurationException where the store is registered as another kind already
   */
  public static RegisteredStore join(StoreOptions options, Supplier<? extends Shim> shim) {
    return Registry.current().join(options, shim);
  }

  /**
   * Registers a store that this process waits for and never reads; its kind is that of its replicas' URLs.
   *
   * @throws ConfigurationException where no replica is given by a URL, or no shim on the class path knows its scheme
   */
  public static RegisteredStore register(StoreOptions options) {
    List<?> servers = options.replicas() != null ? options.replicas() : Registry.replicasInEnvironment(options.name());
    if (servers == null) {
      servers = List.of();
    }
    for (Object server : servers) {
      if (server instanceof String url && url.contains("://")) {
        return join(options, forScheme(url.substring(0, url.indexOf("://"))));
      }
    }
    throw new ConfigurationException(
        "AP501",
        "store \"%s\": give the URL of one of its servers: StoreOptions.named(\"%s\").replicas(\"redis://…\")"
            .formatted(options.name(), options.name()));
  }

  /** The kinds of store whose shims are on the class path, in order. */
  public static List<String> kinds() {
    return found().stream().map(Shim::kind).distinct().sorted().toList();
  }

  /** Return the store of this name, as this process has registered it; null where it has none. */
  public static RegisteredStore find(String name) {
    return Registry.current().get(name);
  }

  /** Return the known name that somebody may have meant by this one, or null where none is near. */
  public static String nearest(String name, Collection<String> known) {
    return NearestName.of(name, known);
  }

  private static Supplier<Shim> forScheme(String scheme) {
    for (ServiceLoader.Provider<Shim> provider : providers()) {
      if (provider.get().schemes().contains(scheme)) {
        return provider::get; // each call makes another one
      }
    }
    String known = found().stream()
        .flatMap(shim -> shim.schemes().stream())
        .collect(Collectors.toCollection(TreeSet::new))
        .toString();
    throw new ConfigurationException(
        "AP502",
        "no shim on the class path knows " + scheme + "://…; known: " + known + ". Add its artifact antipode-<store>.");
  }

  private static List<Shim> found() {
    return providers().stream().map(ServiceLoader.Provider::get).toList();
  }

  private static List<ServiceLoader.Provider<Shim>> providers() {
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    List<ServiceLoader.Provider<Shim>> all =
        new ArrayList<>(ServiceLoader.load(Shim.class, loader).stream().toList());
    if (all.isEmpty()) {
      all.addAll(ServiceLoader.load(Shim.class, Shim.class.getClassLoader()).stream().toList());
    }
    return all;
  }
}
