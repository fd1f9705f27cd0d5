package dev.antipode.lab;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A lab of real servers: {@code antipode-lab} (lab/README.md) in a process of its own, which does the verbs. Ended by {@link
 * #close}, or with the JVM, however that ends.
 *
 * <pre>{@code
 * try (Lab lab = Lab.of("redis").replicas(2).lag("20ms", "40ms").up()) {
 *   connect(lab.server("redis", "a").url());
 *   lab.partition("redis", "b1");
 *   lab.heal();
 * }
 * }</pre>
 */
public final class Lab implements AutoCloseable {
  private static final Duration UP = Duration.ofSeconds(240); // longer than the lab itself waits for a server
  private static final Duration VERB = Duration.ofSeconds(180);
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Path output;
  private final Driver driver;
  private final Path endpoints;

  private Lab(Map<String, Object> wanted) {
    try {
      output = Files.createTempFile("antipode-lab-java-", ".log");
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    driver = new Driver(output);
    try {
      endpoints = Path.of(driver.say(wanted, UP, () -> {}).path("ready").asText());
    } catch (RuntimeException error) {
      close();
      throw error;
    }
  }

  /** What a lab is to have; {@link Builder#up} starts it. */
  public static Builder of(String... stores) {
    return new Builder(List.of(stores));
  }

  /** What a lab is to have. */
  public static final class Builder {
    private final Map<String, Object> wanted = new HashMap<>();
    private final Map<String, Map<String, Object>> options = new HashMap<>();

    private Builder(List<String> stores) {
      wanted.put("stores", stores);
      wanted.put("options", options);
    }

    /** How many replicas each store has in region B. */
    public Builder replicas(int count) {
      wanted.put("replicas", count);
      return this;
    }

    /** The one-way lag of all replicas, or of each: {@code "20ms", "40ms"}. */
    public Builder lag(String... lags) {
      wanted.put("lag", lags.length == 1 ? lags[0] : List.of(lags));
      return this;
    }

    /** An option of a store, its value as JSON or text: {@code set("redis.aof", "true")}. */
    public Builder set(String option, String value) {
      String[] words = option.split("\\.", 2);
      Object parsed;
      try {
        parsed = JSON.readValue(value, Object.class);
      } catch (IOException text) {
        parsed = value;
      }
      options.computeIfAbsent(words[0], store -> new HashMap<>()).put(words[1], parsed);
      return this;
    }

    /** Three Redis Sentinels. */
    public Builder sentinels() {
      return set("redis.sentinels", "true");
    }

    /** Starts it; returns when data flow. */
    public Lab up() {
      return new Lab(wanted);
    }
  }

  // What it has

  /** The servers of a store by name, as they are now. */
  public Map<String, LabServer> servers(String store) {
    Map<String, LabServer> servers = new LinkedHashMap<>();
    for (JsonNode node : read().path("stores").path(store).path("servers")) {
      LabServer server = new LabServer(
          node.path("name").asText(),
          node.path("role").asText(),
          node.path("host").asText(),
          node.path("port").asInt(),
          node.path("url").asText(),
          node.path("pid").asLong());
      servers.put(server.name(), server);
    }
    return servers;
  }

  /**
   * A server of a store, as it is now.
   *
   * @throws IllegalArgumentException where there is none of this name
   */
  public LabServer server(String store, String name) {
    LabServer server = servers(store).get(name);
    if (server == null) {
      throw new IllegalArgumentException("the lab has no server " + name + " of " + store);
    }
    return server;
  }

  /** The name of the server that takes a store's writes now. */
  public String primary(String store) {
    return servers(store).values().stream()
        .filter(server -> server.role().equals("primary"))
        .map(LabServer::name)
        .findFirst()
        .orElseThrow(() -> new IllegalStateException(store + " has no primary"));
  }

  /** The file of endpoints, for other processes ({@code ANTIPODE_LAB}). */
  public Path endpoints() {
    return endpoints;
  }

  /** What the lab says of a store beside its servers: {@code stores.<store>.details}. */
  public JsonNode details(String store) {
    return read().path("stores").path(store).path("details");
  }

  private JsonNode read() {
    try {
      return JSON.readTree(endpoints.toFile());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  // Verbs

  /** Changes the one-way lag of a server's links, at once. */
  public void lag(String store, String server, Duration lag) {
    verb(store, "lag", server, lag.toMillis() + "ms");
  }

  /** Parts a server from the others; clients still reach it. */
  public void partition(String store, String server) {
    verb(store, "partition", server);
  }

  /** Parts a server so that connections stay open, and what is on its way is held. */
  public void partitionSilently(String store, String server) {
    verb(store, "partition", List.of(server), Map.of("mode", "silent"), () -> {});
  }

  /** Ends all partitions of all stores; returns when data flow. */
  public void heal() {
    read().path("stores").fieldNames().forEachRemaining(store -> verb(store, "heal"));
  }

  /** Ends a server's partitions; returns when data flow. */
  public void heal(String store, String server) {
    verb(store, "heal", server);
  }

  /** Ends a server's partitions, and returns at once. */
  public void healSoon(String store, String server) {
    verb(store, "heal", List.of(server), Map.of("wait", false), () -> {});
  }

  /** SIGSTOP. */
  public void freeze(String store, String server) {
    verb(store, "freeze", server);
  }

  /** SIGCONT. */
  public void thaw(String store, String server) {
    verb(store, "thaw", server);
  }

  /** SIGKILL; {@link #restart} brings it back. */
  public void kill(String store, String server) {
    verb(store, "kill", server);
  }

  /** Ends a server and starts it again on its port, with what it had. */
  public void restart(String store, String server) {
    verb(store, "restart", server);
  }

  /** A replica becomes the primary, and the other replicas follow it; whatever was written arrives first. */
  public void promote(String store, String server) {
    verb(store, "promote", server);
  }

  /** The same, but what {@code lost} writes at the old primary never arrives anywhere. */
  public void promoteLosing(String store, String server, Runnable lost) {
    verb(store, "promote", List.of(server), Map.of("lose", "<callback>"), lost);
  }

  /** A server becomes a replica of another one, as an old primary that rejoins. */
  public void repoint(String store, String server, String source) {
    verb(store, "repoint", server, source);
  }

  /**
   * Any verb of a store, as the lab's class in Python has it.
   *
   * @throws LabException with what it said, where it fails or does not end
   */
  public JsonNode verb(String store, String verb, Object... words) {
    return verb(store, verb, Arrays.asList(words), Map.of(), () -> {});
  }

  /**
   * Any verb of a store, with keyword arguments; one whose value is {@code <callback>} calls {@code callback}.
   *
   * @throws LabException with what it said, where it fails or does not end
   */
  public JsonNode verb(String store, String verb, List<?> words, Map<String, ?> named, Runnable callback) {
    Map<String, Object> message = Map.of("store", store, "verb", verb, "words", words, "named", named);
    return driver.say(message, VERB, callback).path("result");
  }

  /** Ends every process of the lab. Twice is harmless. */
  @Override
  public void close() {
    driver.close();
    try {
      Files.deleteIfExists(output);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
