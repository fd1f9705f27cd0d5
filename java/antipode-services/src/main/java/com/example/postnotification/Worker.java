package com.example.postnotification;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.StoreOptions;
import dev.antipode.redis.AntipodeRedis;
import dev.antipode.shim.Capabilities.Rest;
import jakarta.servlet.http.HttpServletRequest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import redis.clients.jedis.UnifiedJedis;

/** worker: does what a plan says, step by step, on several stores of Redis (benchmarks/services.md). */
final class Worker implements Service {
  /** Among a store's servers: the one at which the worker reads, and for which its barriers wait. */
  private static final String HERE = "here";

  private final Site site;
  private final Map<String, Map<String, UnifiedJedis>> clients = new HashMap<>();
  private final List<ObjectNode> visits = new ArrayList<>();
  private final AtomicReference<String> failure = new AtomicReference<>("");
  private RabbitNotifications.Publisher publisher;

  Worker(Site site) {
    this.site = site;
    site.setup().stores().forEach((store, servers) -> client(store, HERE)); // barriers know every store from the start
  }

  @Override
  public void start() throws Exception {
    Setup setup = site.setup();
    new RabbitNotifications(setup, "b", setup.options().consumers())
        .consume((headers, body) -> serve(body), this::failed);
  }

  @Override
  public Answer answer(HttpServletRequest request, byte[] body) throws Exception {
    if (!Service.is(request, "POST", "/visits")) {
      return Answer.NOTHING_HERE;
    }
    try {
      serve(body);
    } catch (Exception error) {
      failed(error);
      throw error;
    }
    return Answer.json(200, Map.of());
  }

  private void serve(byte[] body) throws Exception {
    JsonNode visit = Answer.JSON.readTree(body);
    ObjectNode done = Answer.JSON.createObjectNode().put("visit", visit.get("visit").asText());
    ArrayNode results = done.putArray("results");
    for (JsonNode step : visit.get("steps")) {
      results.add(take(step, Answer.JSON.createObjectNode()));
    }
    synchronized (visits) {
      visits.add(done);
    }
  }

  private ObjectNode take(JsonNode step, ObjectNode result) throws Exception {
    switch (step.get("do").asText()) {
      case "write" -> {
        UnifiedJedis client = client(step.get("store").asText(), step.get("server").asText());
        result.put("sent_ns", System.nanoTime()); // CLOCK_MONOTONIC, which the processes of a machine share
        client.set(step.get("key").asText(), step.get("value").asText());
      }
      case "read" -> {
        UnifiedJedis client = client(step.get("store").asText(), HERE);
        result.put("sent_ns", System.nanoTime());
        result.put("value", client.get(step.get("key").asText()));
      }
      case "barrier" -> result.put(
          "complete", Antipode.barrier(BarrierOptions.defaults().timeout(site.setup().timeout())).complete());
      case "call" -> site.post(
          step.get("to").asText(), "/visits", "application/json", Answer.JSON.writeValueAsBytes(step.get("visit")), 200);
      case "send" -> {
        try (Tracing.Current sending = Tracing.sending()) {
          publisher().publish(step.get("to").asText(), Answer.JSON.writeValueAsBytes(step.get("visit")));
        }
      }
      default -> throw new IllegalArgumentException("no worker can do this: " + step.get("do"));
    }
    return result;
  }

  private synchronized UnifiedJedis client(String store, String server) {
    Map<String, String> servers = site.setup().stores().get(store);
    StoreOptions plain = StoreOptions.named(store).replicas(servers.get(HERE));
    StoreOptions options =
        "envelope".equals(site.setup().rest()) ? plain.rest(Rest.ENVELOPE).envelopeKeys("*") : plain;
    return clients
        .computeIfAbsent(store, name -> new HashMap<>())
        .computeIfAbsent(server, name -> AntipodeRedis.wrap(RedisPosts.connect(servers.get(name)), options));
  }

  /** Connects when it is first wanted. */
  private synchronized RabbitNotifications.Publisher publisher() throws Exception {
    if (publisher == null) {
      publisher = new RabbitNotifications(site.setup(), "a", 1).publisher();
    }
    return publisher;
  }

  private void failed(Exception error) {
    error.printStackTrace();
    failure.compareAndSet("", error.toString());
  }

  /** The visits that are over, beyond the first {@code after}, and whether one has failed. */
  @Override
  public Answer control(HttpServletRequest request) {
    if (!Service.is(request, "GET", "/-/visits")) {
      return Answer.NOTHING_HERE;
    }
    String after = request.getParameter("after");
    List<ObjectNode> shown;
    synchronized (visits) {
      int first = after == null ? 0 : Math.min(Integer.parseInt(after), visits.size());
      shown = List.copyOf(visits.subList(first, visits.size()));
    }
    return Answer.json(200, Map.of("visits", shown, "failure", failure.get()));
  }
}
