package com.example.postnotification;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.Antipode;
import dev.antipode.AntipodeException;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.ScopeKind;
import dev.antipode.Verdict;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.BatchUpdateException;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** The application that the adversary plays: its scopes, barriers and clients, told line by line (benchmarks/adversary.md). */
final class Adversary {
  private final ExecutorService barriers = Executors.newCachedThreadPool();
  private final Map<Integer, LineageScope> scopes = new HashMap<>();
  private final Map<Integer, Ways.Client> clients = new HashMap<>();
  private final Ways.Store store;

  private Adversary(JsonNode setup) throws Exception {
    store = setup.get("kind").asText().equals("postgresql")
        ? new AdversaryPostgresql(setup)
        : new AdversaryRedis(setup);
  }

  /** Does what it is told until standard input ends. */
  static void run() throws Exception {
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    JsonNode setup = Answer.JSON.readTree(input.readLine());
    Adversary adversary = new Adversary(setup);
    say(setup, Map.of(
        "writes", adversary.store.of("write").keySet(),
        "acts", adversary.store.of("act").keySet(),
        "reads", adversary.store.of("read").keySet()));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      JsonNode told = Answer.JSON.readTree(line);
      if (told.get("do").asText().equals("judge")) {
        adversary.barriers.execute(() -> answer(told, () -> adversary.take(told)));
      } else {
        answer(told, () -> adversary.take(told));
      }
    }
  }

  private static void answer(JsonNode told, Callable<Map<String, ?>> work) {
    try {
      say(told, work.call());
    } catch (Exception | Error error) {
      error.printStackTrace();
      say(told, Map.of("failed", String.valueOf(error)));
    }
  }

  private static void say(JsonNode told, Map<String, ?> answer) {
    Map<String, Object> all = new HashMap<>(answer);
    all.put("id", told.get("id").asInt());
    try {
      byte[] line = (Answer.JSON.writeValueAsString(all) + "\n").getBytes(StandardCharsets.UTF_8);
      PrintStream out = System.out;
      synchronized (out) {
        out.write(line);
        out.flush();
      }
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }

  private Map<String, ?> take(JsonNode told) throws Exception {
    int number = told.path("scope").asInt();
    int client = told.path("client").asInt();
    switch (told.get("do").asText()) {
      case "configure" ->
        Antipode.configure(Antipode.settings().timeout(Duration.ofMillis(told.get("timeout_ms").asLong())));
      case "enter" ->
        scopes.put(number, LineageScope.create(Lineage.deserialize(told.get("text").asText()), ScopeKind.ROOT));
      case "end" -> scopes.remove(number).stop();
      case "leave" -> {
        try (Scope current = current(number)) {
          return Map.of("text", Antipode.serialize());
        }
      }
      case "look" -> {
        try (Scope current = current(number)) {
          return judged(null, Duration.ZERO);
        }
      }
      case "judge" -> {
        Duration timeout = Duration.ofMillis(told.get("timeout_ms").asLong());
        return judged(Lineage.deserialize(told.get("text").asText()), timeout);
      }
      case "open" -> clients.put(client, store.open(told.get("kind").asInt(), told.get("plain").asBoolean()));
      case "reader" -> clients.put(client, store.reader());
      case "close" -> {
        return called(() -> {
          clients.remove(client).close();
          return null;
        });
      }
      default -> {
        Ways.Way<Ways.Client> way = store.of(told.get("do").asText()).get(told.get("way").asText());
        try (Scope current = current(number)) {
          return called(() -> way.go(clients.get(client), told.path("row").asText()));
        }
      }
    }
    return Map.of();
  }

  private Scope current(int number) {
    return scopes.get(number).storeInContext(Context.root()).makeCurrent();
  }

  private static Map<String, ?> judged(Lineage lineage, Duration timeout) {
    BarrierOptions options = BarrierOptions.defaults()
        .timeout(timeout)
        .onTimeout(Policy.PROCEED)
        .onUnproven(Policy.PROCEED);
    BarrierResult result = Antipode.barrier(lineage == null ? options : options.lineage(lineage));
    boolean unproven = result.stores().values().stream().anyMatch(each -> each.verdict() == Verdict.UNPROVEN);
    return Map.of(
        "satisfied", result.satisfied(), "complete", result.complete(), "unproven", unproven, "words", result.explain());
  }

  private Map<String, ?> called(Callable<Object> call) {
    try {
      return Map.of("gave", told(call.call()));
    } catch (Exception | Error error) {
      boolean isOurs = error instanceof AntipodeException;
      String whose = isOurs ? "antipode" : store.isOwn(error) ? "client" : "other";
      return Map.of("raised", told(error), "whose", whose);
    }
  }

  /** What a result or an exception says. */
  static String told(Object result) {
    if (result instanceof Throwable error) {
      String counts = error instanceof BatchUpdateException batch
          ? " " + Arrays.toString(batch.getLargeUpdateCounts()) + " " + told(batch.getNextException())
          : "";
      return error.getClass().getSimpleName() + ": " + error.getMessage() + counts;
    }
    if (result instanceof byte[] octets) {
      return new String(octets, StandardCharsets.ISO_8859_1);
    }
    if (result instanceof int[] numbers) {
      return Arrays.toString(numbers);
    }
    if (result instanceof long[] numbers) {
      return Arrays.toString(numbers);
    }
    if (result instanceof List<?> list) {
      return list.stream().map(Adversary::told).toList().toString();
    }
    if (result instanceof Optional<?> some) {
      return told(some.orElse(null));
    }
    boolean isValue = result instanceof String || result instanceof Number || result instanceof Boolean;
    return result == null || isValue ? String.valueOf(result) : "an object";
  }
}
