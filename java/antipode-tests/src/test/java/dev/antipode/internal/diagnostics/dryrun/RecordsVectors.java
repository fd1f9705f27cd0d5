package dev.antipode.internal.diagnostics.dryrun;

import static dev.antipode.internal.diagnostics.dryrun.Lines.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Reach;
import dev.antipode.Reading;
import dev.antipode.ScopeKind;
import dev.antipode.Settings;
import dev.antipode.internal.engine.FollowRegistry;
import dev.antipode.internal.store.Registry;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.propagation.Propagation;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.shim.Write;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** What to do with the vectors of dry-run records (REC-1, REC-3 to REC-8, REC-11 to REC-20, REC-26), on the embedded store. */
public final class RecordsVectors {
  /** By the name of their file. */
  public static final Map<String, Consumer<JsonNode>> KINDS =
      Map.of("records", RecordsVectors::run, "records-sample", RecordsVectors::sample);

  private static final String SPAN_ID = "b7ad6b7169203331";
  private static final String HERE = "here";

  private final Map<String, MemoryStore> stores = new HashMap<>();
  private final Map<String, MemoryClient> clients = new HashMap<>();
  private final Map<String, LineageScope> scopes = new HashMap<>();
  private final Map<String, Scope> current = new HashMap<>();
  private final Map<String, String> texts = new HashMap<>();
  private final Map<String, Write> writes = new HashMap<>();

  private RecordsVectors(JsonNode vector) {
    vector.get("stores").properties().forEach(each -> {
      MemoryStore store = MemoryStore.named(each.getKey())
          .versions(Versions.valueOf(each.getValue().asText().toUpperCase(Locale.ROOT)));
      stores.put(each.getKey(), store);
      clients.put(each.getKey() + "/a", store.client("a"));
      clients.put(each.getKey() + "/b", store.client("b"));
    });
  }

  private static SpanContext contextOf(String trace) {
    return SpanContext.create(trace, SPAN_ID, TraceFlags.getSampled(), TraceState.getDefault());
  }

  private static void sample(JsonNode vector) {
    Antipode.configure(Settings.defaults().sample(vector.get("sample").asDouble()));
    assertThat(Records.isSampled(contextOf(vector.get("trace_id").asText())))
        .isEqualTo(vector.get("sampled").asBoolean());
  }

  private static void run(JsonNode vector) {
    Path folder = temporary();
    long minute = RecordWriter.dueEvery(TimeUnit.HOURS.toNanos(1)); // no summary in the middle
    try {
      Records.forget();
      Lines lines = new Lines(folder.resolve("records"));
      if (vector.has("settings")) {
        vector.get("settings").properties().forEach(each -> configure(each.getKey(), each.getValue()));
      }
      Context context = Context.current();
      if (vector.has("trace_id")) {
        context = context.with(Span.wrap(contextOf(vector.get("trace_id").asText())));
      }
      try (Scope trace = context.makeCurrent()) {
        RecordsVectors run = new RecordsVectors(vector);
        vector.get("steps").forEach(run::step);
      }
      List<String> found = lines.of().stream().map(each -> plain((ObjectNode) each)).map(RecordsVectors::sorted).toList();
      List<String> wanted = stream(vector.get("lines")).map(RecordsVectors::sorted).toList();
      assertThat(found).containsExactlyInAnyOrderElementsOf(wanted);
    } finally {
      RecordWriter.dueEvery(minute);
      delete(folder);
    }
  }

  private static void configure(String word, JsonNode value) {
    Settings now = Antipode.settings();
    Antipode.configure(switch (word) {
      case "mode" -> now.mode(Mode.valueOf(value.asText().toUpperCase(Locale.ROOT)));
      case "sample" -> now.sample(value.asDouble());
      case "repeat_reads" -> now.repeatReads(value.asBoolean());
      case "stores" -> now.stores(stream(value).map(JsonNode::asText).toList());
      case "replica_out_after" -> now.replicaOutAfter(Duration.ofNanos((long) (value.asDouble() * 1e9)));
      default -> throw new AssertionError("no such setting here: " + word);
    });
  }

  private void step(JsonNode step) {
    if (!step.has("in")) {
      act(step);
      return;
    }
    try (Scope within = scopes.get(step.get("in").asText()).makeCurrent()) {
      act(step);
    }
  }

  private void act(JsonNode step) {
    String store = text(step, "store");
    String verb = step.fieldNames().next();
    String name = step.get(verb).asText();
    switch (verb) {
      case "scope" -> open(name, step);
      case "end" -> {
        if (current.containsKey(name)) {
          current.remove(name).close();
          scopes.get(name).stop();
        } else {
          scopes.get(name).close();
        }
      }
      case "answered" -> scopes.get(name).sent();
      case "set" -> clients.get(store + "/a").set(name, text(step, "value"));
      case "get" -> read(step);
      case "barrier" -> barrier(step);
      case "freeze" -> stores.get(name).freeze("b");
      case "heal" -> stores.get(name).heal("b");
      case "stop" -> stores.get(name).stop("b");
      case "lose" -> stores.get(name).promote("b", 1);
      case "begin" -> begin(name, store, step.has("beside"));
      case "abandon" -> writes.remove(name).abandon();
      case "serialize" -> texts.put(name, Antipode.serialize());
      case "incomplete" -> LineageScope.current().markIncomplete(text(step, "reason"), "", name);
      case "call" -> Propagation.approve(name).close();
      case "wait" -> {
        until(FollowRegistry::allLookedAt);
        if (name.equals("followed")) {
          until(() -> FollowRegistry.count() == 0 && Repeats.nothingWaits());
        }
      }
      case "exit" -> Records.end();
      default -> throw new AssertionError("no such step: " + step);
    }
  }

  private void open(String name, JsonNode step) {
    LineageScope scope = switch (text(step, "as")) {
      case "root" -> Antipode.scope();
      case "detached" -> Antipode.detachedScope();
      case "message" ->
          Antipode.messageScope(step.has("carries") ? texts.get(text(step, "carries")) : text(step, "text"));
      case "request" -> {
        LineageScope request = LineageScope.create(dev.antipode.Lineage.EMPTY, ScopeKind.REQUEST);
        current.put(name, request.makeCurrent());
        yield request;
      }
      default -> throw new AssertionError("no such scope: " + step);
    };
    if (step.has("queue")) {
      scope.queue(text(step, "queue"));
    }
    scopes.put(name, scope);
  }

  private void read(JsonNode step) {
    MemoryClient client = clients.get(text(step, "store") + "/" + text(step, "at"));
    String key = text(step, "get");
    if (!step.has("after")) {
      assertThat(client.get(key)).isEqualTo(text(step, "value"));
      return;
    }
    try (Reading reading = Antipode.reading(Antipode.deserialize(texts.get(text(step, "after"))))) {
      assertThat(client.get(key)).isEqualTo(text(step, "value"));
    }
  }

  private static void barrier(JsonNode step) {
    if (Antipode.settings().mode() == Mode.DRY_RUN) {
      assertThat(Antipode.barrier(options(step)).dryRun()).isTrue();
    } else if (step.has("passes")) {
      assertThatThrownBy(() -> Antipode.barrier(options(step).timeout(Duration.ofMillis(200))))
          .isInstanceOf(BarrierTimeoutException.class);
    } else {
      assertThat(Antipode.barrier(options(step).timeout(Duration.ofSeconds(10))).satisfied()).isTrue();
    }
  }

  private static BarrierOptions options(JsonNode step) {
    BarrierOptions options = BarrierOptions.defaults();
    if (step.has("stores")) {
      options = options.stores(stream(step.get("stores")).map(JsonNode::asText).toList());
    }
    return step.has("reach") ? options.reach(Reach.valueOf(text(step, "reach").toUpperCase(Locale.ROOT))) : options;
  }

  private void begin(String name, String store, boolean beside) {
    Runnable begin = () -> writes.put(name, Registry.current().get(store).begin());
    if (!beside) {
      begin.run();
      return;
    }
    Thread other = new Thread(Antipode.carry(begin));
    other.start();
    try {
      other.join();
    } catch (InterruptedException error) {
      throw new AssertionError(error);
    }
  }

  private static String text(JsonNode shape, String field) {
    return shape.hasNonNull(field) ? shape.get(field).asText() : null;
  }

  private static Stream<JsonNode> stream(JsonNode array) {
    return StreamSupport.stream(array.spliterator(), false);
  }

  /** A record as the vectors have it: without what differs from run to run, of which it only says that it is there. */
  private static JsonNode plain(ObjectNode record) {
    assertThat(record.remove("record").asInt()).isOne();
    assertThat(record.remove("time").asDouble()).isCloseTo(
        System.currentTimeMillis() / 1000.0, org.assertj.core.data.Offset.offset(600.0));
    assertThat(record.remove("service").isTextual()).isTrue();
    assertThat(record.remove("region").asText()).isEqualTo("b");
    assertThat(record.remove("process").asText()).matches(".+:[0-9]+:[0-9]+");
    if (record.has("trace_id")) {
      assertThat(record.remove("span_id").asText()).isEqualTo(SPAN_ID);
    }
    for (String name : List.of("site", "barrier", "written_at")) {
      if (record.has(name)) {
        assertThat(record.get(name).asText()).matches("^(.+:[1-9][0-9]*|other)$");
        record.put(name, HERE);
      }
    }
    if (record.has("origin")) {
      JsonNode opened = ((ObjectNode) record.get("origin")).remove("opened_by");
      boolean isTask = record.get("origin").get("scope").asText().equals("task");
      assertThat(opened != null && !opened.asText().isEmpty()).isEqualTo(!isTask);
    }
    timed(record);
    if (record.has("stores")) {
      List<JsonNode> sorted = new ArrayList<>(stream(record.get("stores")).toList());
      sorted.sort(Comparator.comparing(store -> store.get("store").asText()));
      sorted.forEach(store -> timed((ObjectNode) store));
      ((ArrayNode) record.get("stores")).removeAll().addAll(sorted);
    }
    positions(record);
    if (record.get("kind").asText().equals("summary")) {
      assertThat(record.remove("since").asDouble()).isPositive();
      record.set("counts", counts(record));
    }
    return record;
  }

  private static void timed(ObjectNode record) {
    if (record.hasNonNull("visible_after")) {
      assertThat(record.get("visible_after").asDouble()).isBetween(0.0, 60.0);
      record.put("visible_after", "seconds");
    }
  }

  private static void positions(ObjectNode record) {
    if (!record.has("wanted")) {
      return;
    }
    JsonNode wanted = record.get("wanted");
    JsonNode seen = record.get("seen");
    record.put("wanted", "position");
    if (seen != null
        && seen.get("epoch").equals(wanted.get("epoch"))
        && Long.parseUnsignedLong(seen.get("counter").asText()) < Long.parseUnsignedLong(wanted.get("counter").asText())) {
      record.put("seen", "before");
    }
  }

  /** By what, store, and whether there is a site: several sites of one test are one. */
  private static ArrayNode counts(ObjectNode record) {
    Map<List<String>, Integer> sums = new TreeMap<>(Comparator.comparing(Object::toString));
    for (JsonNode count : record.get("counts")) {
      List<String> key =
          List.of(text(count, "what"), count.has("store") ? text(count, "store") : "", count.has("site") ? HERE : "");
      sums.merge(key, count.get("count").asInt(), Integer::sum);
    }
    ArrayNode counts = record.arrayNode();
    sums.forEach((key, number) -> {
      ObjectNode count = counts.addObject().put("what", key.get(0));
      if (!key.get(1).isEmpty()) {
        count.put("store", key.get(1));
      }
      if (!key.get(2).isEmpty()) {
        count.put("site", HERE);
      }
      count.put("count", number);
    });
    return counts;
  }

  /** One text of an object, whatever the order of its fields and of the counts, and however a number is spelled. */
  private static String sorted(JsonNode node) {
    if (node.isObject()) {
      Map<String, String> fields = new TreeMap<>();
      node.properties().forEach(each -> fields.put(each.getKey(), each.getKey().equals("counts")
          ? new TreeSet<>(stream(each.getValue()).map(RecordsVectors::sorted).toList()).toString()
          : sorted(each.getValue())));
      return fields.toString();
    }
    if (node.isArray()) {
      return stream(node).map(RecordsVectors::sorted).toList().toString();
    }
    return node.isNumber() ? node.decimalValue().stripTrailingZeros().toPlainString() : node.toString();
  }

  private static Path temporary() {
    try {
      return Files.createTempDirectory("antipode-records");
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static void delete(Path folder) {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
