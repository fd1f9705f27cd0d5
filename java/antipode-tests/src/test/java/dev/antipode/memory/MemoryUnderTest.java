package dev.antipode.memory;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.shim.Shim;
import dev.antipode.testing.StoreUnderTest;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.Supplier;

/** The embedded store as the conformance kit drives it: the model for a shim's own. Made anew for each case. */
class MemoryUnderTest extends StoreUnderTest {
  private final Versions versions;
  private final Supplier<? extends Shim> shim;
  protected MemoryStore memory;
  protected final Map<String, MemoryClient> clients = new HashMap<>();
  private final AtomicInteger writes = new AtomicInteger();
  private volatile String primary = "a";

  MemoryUnderTest(Versions versions) {
    this(versions, () -> MemoryShim.of(versions));
  }

  MemoryUnderTest(Versions versions, Supplier<? extends Shim> shim) {
    this.versions = versions;
    this.shim = shim;
  }

  @Override
  public Capabilities capabilities() {
    return MemoryShim.of(versions).capabilities();
  }

  @Override
  public Map<String, String> exceptions() {
    return Map.ofEntries(
        Map.entry("address_that_moves", "its servers have no addresses that could lead elsewhere"),
        Map.entry("open_transaction", "the embedded store has no transactions"),
        Map.entry("transaction_only_read_so_far", "the embedded store has no transactions"),
        Map.entry("rolled_back_transaction", "the embedded store has no transactions"),
        Map.entry("barrier_in_a_transaction", "the embedded store has no transactions"),
        Map.entry("commit_inside_a_transaction", "the embedded store has no transactions"),
        Map.entry("transaction_over_two_scopes", "the embedded store has no transactions"),
        Map.entry("transaction_that_another_scope_executes", "the embedded store has no transactions"),
        Map.entry("past_moment", "each of its reads is of the moment at which it is made"),
        Map.entry("missing_rights", "the embedded store has no users"),
        Map.entry("unfit_topology", "the embedded store has one topology"));
  }

  @Override
  public Duration patience() {
    return Duration.ofSeconds(10);
  }

  @Override
  public Duration brief() {
    return Duration.ofMillis(100);
  }

  @Override
  public void begin() {
    memory = MemoryStore.named(name())
        .regions("a", "b", "c")
        .lag("b", Duration.ofMillis(5))
        .lag("c", Duration.ofMillis(20))
        .versions(versions)
        .answeredBy(shim);
    StoreOptions listed = StoreOptions.named(name()).replicas(memory.servers("b", "c"));
    for (String region : List.of("b", "c", "a")) {
      clients.put(region, memory.client(region, listed));
    }
    Antipode.configure(Settings.defaults().replicaOutAfter(Duration.ofMillis(200)));
  }

  @Override
  public void recover(boolean spoiled) {} // the next case makes a store of its own

  @Override
  public String primary() {
    return primary;
  }

  @Override
  public List<String> replicas() {
    return List.of("b", "c");
  }

  @Override
  public void write(String key, String value) {
    writes.incrementAndGet();
    clients.get(primary).set(key, value);
  }

  @Override
  public String look(String key, String at) {
    return memory.look(at, key);
  }

  @Override
  public String read(String key, String at) {
    return clients.get(at).get(key);
  }

  @Override
  public void delete(String key) {
    clients.get(primary).delete(key);
  }

  @Override
  public void rawWrite(String key, String value) {
    memory.put(key, value);
  }

  @Override
  public void writeNothing() {
    delete(newKey("never-there"));
  }

  @Override
  public Object wrapClient(String server, List<String> names, boolean waitOnRead) {
    StoreOptions options = StoreOptions.named(name()).waitOnRead(waitOnRead);
    return memory.client(server, names == null ? options : options.replicas(memory.servers(names.toArray(String[]::new))));
  }

  @Override
  public Map<String, Function<String, Object>> reads(Object client) {
    return Map.of("get", ((MemoryClient) client)::get);
  }

  @Override
  public Object wrapUnused(String server) {
    return memory.client(server, StoreOptions.named(name()));
  }

  @Override
  public void setLag(String replica, Duration lag) {
    memory.setLag(replica, lag);
  }

  @Override
  public void partition(String replica) {
    memory.freeze(replica);
  }

  @Override
  public void heal(String replica) {
    memory.heal(replica);
  }

  @Override
  public void freeze(String server) {
    memory.stop(server);
  }

  @Override
  public void thaw(String server) {
    memory.restart(server);
  }

  @Override
  public void restart(String server) {
    memory.restart(server);
  }

  @Override
  public void repoint(String replica, String source) {
    memory.repoint(replica, source);
  }

  @Override
  public void promote(String replica, Runnable lost) {
    int before = writes.get();
    if (lost != null) {
      List.of("a", "b", "c").forEach(memory::freeze);
      lost.run();
    }
    memory.promote(replica, writes.get() - before);
    primary = replica;
    List.of("a", "b", "c").forEach(memory::heal);
  }

  @Override
  public void waitMarked(Lineage lineage) {} // the new primary marks the end of the epoch before it by itself

  @Override
  public void writeWithUnknownOutcome(String key, String value) {
    memory.loseNextAnswer();
    write(key, value);
  }

  @Override
  public void writeRefused(String key) {
    clients.get(near()).set(key, "v");
  }
}
