package dev.antipode.internal.engine;

import dev.antipode.Mode;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Shims;
import dev.antipode.shim.Visibility;
import java.net.ConnectException;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/** A shim whose servers answer what a test says: for the engine's own rules, which no real store shows on demand. */
class FakeShim extends Shim {
  /** What a server answers. */
  @FunctionalInterface
  interface Answer {
    List<Visibility> to(List<WriteId> ids, Server server) throws Exception;
  }

  /** One server: {@code answer} says what it answers, {@code asked} counts the questions. */
  static class Fake {
    final String name;
    volatile Answer answer;
    final AtomicInteger asked = new AtomicInteger();

    Fake(String name, Answer answer) {
      this.name = name;
      this.answer = answer;
    }
  }

  static final Answer DOWN = (ids, server) -> {
    throw new ConnectException("connection refused");
  };

  static Answer always(Visibility visibility) {
    return (ids, server) -> Collections.nCopies(ids.size(), visibility);
  }

  private static StoreOptions options(String name, Fake... servers) {
    StoreOptions options = StoreOptions.named(name);
    return servers.length == 0 ? options : options.replicas(Arrays.asList(servers));
  }

  static RegionStore store(String name, Fake... servers) {
    return store(FakeShim::new, options(name, servers));
  }

  static RegionStore store(String name, Mode mode, Fake... servers) {
    return store(FakeShim::new, options(name, servers).mode(mode));
  }

  static RegionStore store(Supplier<? extends Shim> shim, StoreOptions options) {
    return RegionStore.of(Shims.join(options, shim));
  }

  @Override
  public String kind() {
    return "fake";
  }

  @Override
  public Capabilities capabilities() {
    return Capabilities.objects();
  }

  @Override
  public List<Visibility> visible(List<WriteId> ids, Server server) throws Exception {
    Fake fake = (Fake) server.target();
    fake.asked.incrementAndGet();
    return fake.answer.to(ids, server);
  }

  @Override
  public String address(Object target) {
    return ((Fake) target).name;
  }
}
