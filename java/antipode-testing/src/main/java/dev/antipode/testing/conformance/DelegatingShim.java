package dev.antipode.testing.conformance;

import dev.antipode.StoreOptions;
import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Shims;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.Watch;
import dev.antipode.testing.StoreUnderTest;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.function.Supplier;

/** A shim that answers as that of the store under test does, for a registration of the kit's own in another registry. */
class DelegatingShim extends Shim {
  private final Shim real;

  DelegatingShim(Shim real) {
    this.real = real;
  }

  /** The targets of the servers that a registration names. */
  static List<Object> targets(RegisteredStore registered) {
    return registered.servers(false).stream().<Object>map(Server::target).toList();
  }

  /** Registers the store in the registry in force, with servers that are named anew. */
  static RegisteredStore register(StoreUnderTest store, Shim shim, Supplier<? extends Collection<?>> servers) {
    return Shims.join(StoreOptions.named(store.name()).replicas(servers), () -> shim);
  }

  @Override
  public String kind() {
    return real.kind();
  }

  @Override
  public Capabilities capabilities() {
    return real.capabilities();
  }

  @Override
  public List<Visibility> visible(List<WriteId> ids, Server server) throws Exception {
    return real.visible(ids, server);
  }

  @Override
  public Watch watch(Server server) throws Exception {
    return real.watch(server);
  }

  @Override
  public List<Visibility> await(List<WriteId> ids, Server server, Duration timeout) throws Exception {
    return real.await(ids, server, timeout);
  }

  @Override
  public void close(Server server) {
    real.close(server);
  }

  @Override
  public String address(Object target) {
    return real.address(target);
  }

  @Override
  public Callable<? extends Collection<?>> naming(Object target) {
    return real.naming(target);
  }

  @Override
  public Set<String> schemes() {
    return real.schemes();
  }

  @Override
  public boolean unreachable(Exception error) {
    return real.unreachable(error);
  }

  @Override
  public boolean renews() {
    return real.renews();
  }

  @Override
  public AutoCloseable renew(Server server) throws Exception {
    return real.renew(server);
  }

  @Override
  public boolean reconnects() {
    return real.reconnects();
  }

  @Override
  public UnprovenKind kindOf(Exception error) {
    return real.kindOf(error);
  }

  @Override
  public Duration ownPace() {
    return real.ownPace();
  }
}
