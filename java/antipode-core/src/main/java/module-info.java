/** Cross-service causal consistency: lineages, scopes, barriers, and the contract of shims. */
module dev.antipode.core {
  requires transitive io.opentelemetry.api;
  requires transitive io.opentelemetry.context;
  requires java.logging;
  // Not provided: a module cannot provide what may be absent. On the module path AntipodePropagator is set in code.
  requires static io.opentelemetry.sdk.autoconfigure.spi;

  exports dev.antipode;
  exports dev.antipode.observer;
  exports dev.antipode.propagation;
  exports dev.antipode.shim;
  exports dev.antipode.internal.base to dev.antipode.diagnostics, dev.antipode.testing;
  exports dev.antipode.internal.engine to dev.antipode.diagnostics, dev.antipode.testing;
  exports dev.antipode.internal.scope to dev.antipode.testing;
  exports dev.antipode.internal.store to dev.antipode.diagnostics, dev.antipode.testing;

  uses dev.antipode.internal.store.StoreFactory;
  uses dev.antipode.observer.Observer;
  uses dev.antipode.shim.Shim;

  provides dev.antipode.internal.store.StoreFactory with
      dev.antipode.internal.engine.RegionStore.Factory;
}
