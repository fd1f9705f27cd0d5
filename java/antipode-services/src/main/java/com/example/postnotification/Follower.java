package com.example.postnotification;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import jakarta.servlet.http.HttpServletRequest;
import java.net.http.HttpResponse;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;

/**
 * follower-notify: takes a notification in region B and fetches its post (paper figure 2, steps 4 and 5). It has no access
 * to the posts' store but through post-storage.
 */
final class Follower implements Service {
  private final Site site;
  private final List<Delivery> deliveries = new ArrayList<>();
  private final AtomicReference<String> failure = new AtomicReference<>("");

  Follower(Site site) {
    this.site = site;
    if (site.setup().barrierInFollower()) {
      Posts.register(site.setup());
    }
  }

  @Override
  public Answer answer(HttpServletRequest request, byte[] body) throws Exception {
    if (!Service.is(request, "POST", "/notifications")) {
      return Answer.NOTHING_HERE;
    }
    try {
      deliver(body, (Traffic.Size) request.getAttribute(Door.SIZE));
    } catch (Exception error) {
      failed(error);
      throw error;
    }
    return Answer.json(202, Map.of());
  }

  @Override
  public void start() throws Exception {
    Setup setup = site.setup();
    if (setup.queues().containsKey("b")) {
      new RabbitNotifications(setup, "b", setup.options().consumers()).consume(this::take, this::failed);
    }
  }

  private void take(Map<String, String> headers, byte[] body) throws Exception {
    Traffic.Size size = new Traffic.Size();
    headers.forEach(size::line);
    deliver(body, size);
  }

  /** Handles a notification, in its scope and its trace. */
  private void deliver(byte[] body, Traffic.Size headers) throws Exception {
    long received = System.nanoTime();
    boolean complete = true;
    if (site.setup().barrierInFollower()) {
      complete = Antipode.barrier(BarrierOptions.defaults().timeout(site.setup().timeout())).complete();
    }
    long ready = System.nanoTime();
    String post = Answer.JSON.readTree(body).get("post").asText();
    HttpResponse<byte[]> found = site.get("post-storage-b", "/posts/" + post);
    long done = System.nanoTime();
    Site.want("post-storage-b", found, 200, 404);
    Delivery delivery = new Delivery(
        post,
        received,
        ready,
        done,
        found.headers().firstValueAsLong("x-read-at-ns").orElseThrow(),
        found.statusCode() == 200 ? digest(found.body()) : null,
        found.headers().firstValue("x-replica").orElseThrow(),
        complete,
        Tracing.traceId(),
        Tracing.requestBaggage(),
        headers.all(),
        headers.lineage());
    synchronized (deliveries) {
      deliveries.add(delivery);
    }
  }

  private void failed(Exception error) {
    error.printStackTrace();
    failure.compareAndSet("", error.toString());
  }

  private static String digest(byte[] body) throws Exception {
    return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(body));
  }

  /** What was delivered beyond the first {@code after}, and whether anything has failed. */
  @Override
  public Answer control(HttpServletRequest request) {
    if (!Service.is(request, "GET", "/-/deliveries")) {
      return Answer.NOTHING_HERE;
    }
    String after = request.getParameter("after");
    List<Delivery> shown;
    synchronized (deliveries) {
      int first = after == null ? 0 : Math.min(Integer.parseInt(after), deliveries.size());
      shown = List.copyOf(deliveries.subList(first, deliveries.size()));
    }
    return Answer.json(200, Map.of("deliveries", shown, "failure", failure.get()));
  }
}
