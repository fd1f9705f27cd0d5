package com.example.postnotification;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.antipode.BarrierResult;
import jakarta.servlet.http.HttpServletRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;

/** worker: does what a plan says, step by step, on several stores of Redis (benchmarks/services.md). */
final class Worker implements Service {
  private final Site site;
  private final WorkerClients clients;
  private final List<ObjectNode> visits = new ArrayList<>();
  private final AtomicReference<String> failure = new AtomicReference<>("");
  private RabbitNotifications.Publisher publisher;

  Worker(Site site) {
    this.site = site;
    clients = new WorkerClients(site.setup());
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
        result.put("sent_ns", System.nanoTime()); // CLOCK_MONOTONIC, which the processes of a machine share
        clients.set(
            step.get("store").asText(),
            step.get("server").asText(),
            step.get("key").asText(),
            step.get("value").asText());
      }
      case "read" -> {
        result.put("sent_ns", System.nanoTime());
        result.put("value", clients.get(step.get("store").asText(), step.get("key").asText()));
      }
      case "barrier" -> {
        BarrierResult passed = clients.barrier(step.hasNonNull("timeout") ? step.get("timeout").asDouble() : null);
        result.put("complete", passed.complete()).put("satisfied", passed.satisfied());
      }
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
