package dev.antipode.internal.store;

import dev.antipode.ConfigurationException;
import dev.antipode.StoreOptions;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Shim;
import java.util.ServiceLoader;

/** What makes the stores of this process, with the servers that barriers judge: a higher room's, found by its name. */
public interface StoreFactory {
  /** Return a store without servers that this shim serves. */
  RegisteredStore make(String name, Shim shim, StoreOptions options);

  /**
   * Return the factory that stands beside this interface, whatever the thread's own class loader sees.
   *
   * @throws ConfigurationException where the jar was packed anew without it: no store may join that no barrier can judge
   */
  static StoreFactory found() {
    return ServiceLoader.load(StoreFactory.class, StoreFactory.class.getClassLoader())
        .findFirst()
        .orElseThrow(() -> new ConfigurationException(
            "AP501",
            "META-INF/services/" + StoreFactory.class.getName() + " is missing: keep the service files of antipode-core "
                + "where you pack its classes into another jar (Maven's shade plugin: ServicesResourceTransformer)"));
  }
}
