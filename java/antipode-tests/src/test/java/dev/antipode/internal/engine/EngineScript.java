package dev.antipode.internal.engine;

import static dev.antipode.internal.engine.EngineTest.until;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Reach;
import dev.antipode.ServerResult;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.StoreResult;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.shim.Server;
import dev.antipode.shim.Setting;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * Runs a script of {@code spec/vectors/engine-script.json}: the engine is real, the servers answer when the script says so.
 * Nothing here depends on when the engine asks: a question is held until its answer comes, all waits are for conditions.
 */
final class EngineScript {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<String, String> SETTINGS = Map.of(
      "free_path_ttl_ms", "3600000", "replica_out_after_ms", "60000", "reconnect_ms", "3600000", "poll_ms", "5");

  /** What lists the servers of a store: what it answers (null: it fails), and how often it was asked. */
  private final class Listing implements Supplier<Collection<?>> {
    private volatile List<String> names;
    private final AtomicInteger asked = new AtomicInteger();

    @Override
    public Collection<?> get() {
      asked.incrementAndGet();
      List<String> now = names;
      if (now == null) {
        throw new IllegalStateException("the list cannot be had");
      }
      return now.stream().map(EngineScript.this::server).toList();
    }
  }

  private final JsonNode script;
  private final Map<String, WriteId> writes = new LinkedHashMap<>();
  private final Map<WriteId, String> names = new HashMap<>();
  private final Map<String, ScriptedServer> servers = new ConcurrentHashMap<>();
  private final Map<String, RegionStore> stores = new HashMap<>();
  private final Map<String, Listing> listings = new HashMap<>();
  private final Map<String, CompletableFuture<BarrierResult>> calls = new HashMap<>();

  private EngineScript(JsonNode script) {
    this.script = script;
    script.get("writes").properties().forEach(each -> writes.put(each.getKey(), writeId(each.getValue())));
    writes.forEach((name, id) -> names.put(id, name));
    Map<String, String> said = new HashMap<>(SETTINGS);
    script.path("settings").properties().forEach(each -> said.put(each.getKey(), each.getValue().asText()));
    Antipode.configure(settings(said));
    script.get("stores").properties().forEach(each -> register(each.getKey(), each.getValue()));
  }

  private static WriteId writeId(JsonNode entry) {
    Ordered version = Ordered.of(entry.get("epoch").asText(), entry.get("counter").asText());
    return new WriteId(entry.get("store").asText(), Key.of(entry.get("key").asText()), version);
  }

  private static Settings settings(Map<String, String> said) {
    Settings settings = Settings.defaults();
    for (Map.Entry<String, String> each : said.entrySet()) { // a variable in milliseconds reads the same text
      Setting setting = Setting.valueOf(each.getKey().replaceAll("_ms$", "").toUpperCase());
      settings = settings.with(setting, setting.read(each.getValue(), each.getKey()));
    }
    return settings;
  }

  private void register(String name, JsonNode said) {
    StoreOptions options = StoreOptions.named(name);
    if (said.path("discovers").asBoolean()) {
      Listing listing = new Listing();
      listing.names = texts(said.get("servers"));
      listings.put(name, listing);
      options = options.replicas(listing);
    } else {
      options = options.replicas(texts(said.get("servers")).stream().map(this::server).toList());
    }
    RegionStore store = FakeShim.store(() -> new ScriptedShim(said), options);
    stores.put(name, store);
    for (String own : texts(said.path("own"))) {
      store.useServer(options, server(own));
    }
  }

  private static List<String> texts(JsonNode array) {
    return StreamSupport.stream(array.spliterator(), false).map(JsonNode::asText).toList();
  }

  private ScriptedServer server(String name) {
    return servers.computeIfAbsent(name, each -> new ScriptedServer(each, names, ScriptedReply.of(JSON.createObjectNode())));
  }

  /** Return the engine's own of this server; null where it has not joined. */
  private Server engine(String name) {
    return stores.values().stream().map(store -> store.serverAt(name)).filter(Objects::nonNull).findFirst().orElse(null);
  }

  /** Runs the steps of a case. */
  static void run(JsonNode script) {
    EngineScript run = new EngineScript(script);
    try (LineageScope scope = Antipode.scope(Lineage.of(run.writes.values()))) {
      assertThat(scope).isNotNull();
      int number = 0;
      for (JsonNode step : script.get("steps")) {
        run.step(step, "step %d, %s".formatted(number++, step));
      }
    } finally {
      run.servers.values().forEach(ScriptedServer::open);
    }
  }

  private void step(JsonNode step, String words) {
    try {
      step(step);
    } catch (AssertionError error) {
      throw new AssertionError(words + ": " + error.getMessage(), error);
    }
  }

  private void step(JsonNode step) {
    switch (step.get("do").asText()) {
      case "hold" -> at(step).forEach(ScriptedServer::hold);
      case "open" -> at(step).forEach(ScriptedServer::open);
      case "show" -> at(step).forEach(server -> server.show(ScriptedReply.of(step)));
      case "asked" -> at(step).forEach(server -> until(() -> server.isAskedFor(texts(step.path("for")))));
      case "answer" -> at(step).forEach(server -> answer(server, step));
      case "replaced" -> ScriptedServer.push(engine(step.get("at").asText())::reset);
      case "push" -> at(step).forEach(EngineScript::push);
      case "awaited" -> untilAwaited(step.get("at").asText(), step.get("is").asBoolean());
      case "elapse" -> elapse(step.get("ms").asLong());
      case "wrap" -> wrap(step.get("store").asText(), step.get("at").asText());
      case "discovery" -> discover(stores.get(step.get("store").asText()), step.get("names"));
      case "barrier" -> calls.put(step.get("call").asText(), barrier(step));
      case "waits" -> assertThat(call(step)).isNotDone();
      case "cancel" -> assertThat(call(step).cancel(true)).isTrue();
      case "free" -> assertThat(isFree()).isEqualTo(step.get("is").asBoolean());
      case "outcome" -> outcome(call(step), step);
      default -> throw new AssertionError("a step that this runner does not know");
    }
  }

  private Collection<ScriptedServer> at(JsonNode step) {
    return step.has("at") ? List.of(server(step.get("at").asText())) : servers.values();
  }

  private CompletableFuture<BarrierResult> call(JsonNode step) {
    return calls.get(step.get("call").asText());
  }

  // Servers

  private static void answer(ScriptedServer server, JsonNode step) {
    until(() -> server.isAskedFor(List.of()));
    ScriptedReply reply = ScriptedReply.of(step);
    if (!step.path("once").asBoolean()) {
      server.show(reply.still());
    }
    server.letGo(reply);
  }

  private static void push(ScriptedServer server) {
    until(() -> server.channel() != null);
    ScriptedServer.push(server.channel()::changed);
  }

  private void untilAwaited(String name, boolean is) {
    until(() -> {
      Server server = engine(name);
      return server != null && server.awaited() == is;
    });
  }

  private static void elapse(long millis) {
    long began = Ticks.now();
    until(() -> Ticks.now() - began >= TimeUnit.MILLISECONDS.toNanos(millis));
  }

  private void wrap(String store, String server) {
    JsonNode said = script.get("stores").get(store);
    FakeShim.store(() -> new ScriptedShim(said), StoreOptions.named(store).replicas(List.of(server(server))));
  }

  private void discover(RegionStore store, JsonNode said) {
    Listing listing = listings.get(store.name());
    int before = listing.asked.get();
    List<String> now = said.isNull() ? null : texts(said);
    listing.names = now;
    until(() -> store.replicas() != null && listing.asked.get() > before); // who reads them has it asked
    if (now != null && !now.isEmpty()) {
      until(() -> Set.copyOf(store.replicas()).equals(Set.copyOf(now)));
    }
  }

  // Barriers

  private CompletableFuture<BarrierResult> barrier(JsonNode step) {
    List<String> wanted = step.has("writes") ? texts(step.get("writes")) : List.copyOf(writes.keySet());
    BarrierOptions options = EngineTest.proceeding(
            Lineage.of(wanted.stream().map(writes::get).toList()), Duration.ofMillis(step.path("timeout_ms").asLong(60_000)))
        .reach(step.has("reach") ? Reach.valueOf(step.get("reach").asText().toUpperCase()) : null)
        .requireComplete(step.path("require_complete").asBoolean());
    return step.path("task").asBoolean()
        ? Antipode.barrierAsync(options)
        : CompletableFuture.supplyAsync(() -> Antipode.barrier(options), EngineTest::started);
  }

  private boolean isFree() {
    servers.values().forEach(server -> server.holdAll(true));
    boolean passes = Antipode.barrier(EngineTest.proceeding(null, Duration.ZERO)).satisfied();
    servers.values().forEach(server -> server.holdAll(false));
    return passes;
  }

  private static void outcome(CompletableFuture<BarrierResult> call, JsonNode step) {
    String error = "";
    BarrierResult result = null;
    try {
      result = call.get(2, TimeUnit.MINUTES);
    } catch (CancellationException cancelled) {
      error = "cancelled";
    } catch (ExecutionException failure) {
      error = BarrierVectorsTest.pythonName(failure.getCause());
    } catch (Exception late) {
      throw new AssertionError("it is not over", late);
    }
    assertThat(error).isEqualTo(step.path("error").asText(""));
    if (result != null) {
      ObjectNode found = found(result);
      ObjectNode wanted = JSON.createObjectNode();
      wanted.putObject("kinds");
      wanted.putArray("left_out");
      wanted.setAll((ObjectNode) step);
      wanted.retain(fields(found));
      assertThat(found.retain(fields(wanted))).as(result.explain()).isEqualTo(wanted);
    }
  }

  private static List<String> fields(ObjectNode object) {
    return object.properties().stream().map(Map.Entry::getKey).toList();
  }

  private static ObjectNode found(BarrierResult result) {
    Map<String, String> verdicts = new HashMap<>();
    Map<String, String> kinds = new HashMap<>();
    result.stores().forEach((name, store) -> {
      verdicts.put(name, store.verdict().word());
      if (store.kind() != null) {
        kinds.put(name, store.kind().word());
      }
    });
    return JSON.valueToTree(Map.of(
        "satisfied", result.satisfied(),
        "complete", result.complete(),
        "verdicts", verdicts,
        "kinds", kinds,
        "left_out", result.stores().values().stream().flatMap(store -> store.leftOut().stream()).sorted().toList(),
        "servers", judged(result).map(ServerResult::address).sorted().toList(),
        "overloaded", judged(result).anyMatch(ServerResult::overloaded)));
  }

  private static Stream<ServerResult> judged(BarrierResult result) {
    return result.stores().values().stream().map(StoreResult::servers).flatMap(Collection::stream);
  }
}
