package com.example.postnotification;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/** What a host is told: benchmarks/services.md. */
@JsonIgnoreProperties(ignoreUnknown = true)
record Setup(
    Options options,
    boolean antipode,
    Map<String, String> addresses,
    Map<String, String> posts,
    Map<String, String> queues,
    String exchange,
    String queue,
    Map<String, Map<String, String>> stores,
    String rest,
    String clients) {
  /** The logical name of the posts' store. */
  static final String STORE = "blog-posts";

  /** The logical name of the notifier's queue. */
  static final String QUEUE = "notifications";

  private static final ObjectMapper JSON = new ObjectMapper();

  /** The part of it that is the run's. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  record Options(
      @JsonProperty("post_storage") String postStorage, String notifier, String barrier, double timeout, int consumers) {}

  static Setup read(String line) {
    try {
      return JSON.readValue(line, Setup.class);
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException("this is no setup: " + error.getOriginalMessage(), error);
    }
  }

  /** This one with what a host may be told anew: the addresses, the notifier and the exchange of another. */
  Setup routed(Setup other) {
    Options mixed = new Options(
        options.postStorage, other.options.notifier, options.barrier, options.timeout, options.consumers);
    return new Setup(mixed, antipode, other.addresses, posts, queues, other.exchange, queue, stores, rest, clients);
  }

  /** The posts' servers in region B. */
  Map<String, String> replicas() {
    Map<String, String> replicas = new LinkedHashMap<>(posts);
    replicas.remove("a");
    return replicas;
  }

  boolean barrierInFollower() {
    return antipode && options.barrier.equals("follower");
  }

  boolean waitOnRead() {
    return antipode && options.barrier.equals("wait-on-read");
  }

  Duration timeout() {
    return Duration.ofNanos((long) (options.timeout * 1e9));
  }
}
