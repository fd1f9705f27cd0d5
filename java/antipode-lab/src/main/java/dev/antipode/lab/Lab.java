package dev.antipode.lab;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * A lab of real servers, driven by the commands of {@code antipode-lab} (lab/README.md). Ended by {@link #close}, or by a
 * hook when the JVM ends.
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
  private static final Duration UP = Duration.ofSeconds(120);
  private static final Duration VERB = Duration.ofSeconds(60);
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Path folder;
  private final Path endpoints;
  private final Thread hook = new Thread(this::down, "antipode-lab-down");
  private boolean closed; // under the lock of this

  private Lab(Path folder) {
    this.folder = folder;
    this.endpoints = folder.resolve("lab.json");
  }

  /** What a lab is to have; {@link Builder#up} starts it. */
  public static Builder of(String... stores) {
    return new Builder(List.of(stores));
  }

  /** What a lab is to have. */
  public static final class Builder {
    private final List<String> arguments = new ArrayList<>();

    private Builder(List<String> stores) {
      arguments.addAll(stores);
    }

    /** How many replicas each store has in region B. */
    public Builder replicas(int count) {
      return option("--replicas", Integer.toString(count));
    }

    /** The one-way lag of all replicas, or of each: {@code "20ms", "40ms"}. */
    public Builder lag(String... lags) {
      return option("--lag", String.join(",", lags));
    }

    /** An option of a store: {@code set("redis.aof", "true")}. */
    public Builder set(String option, String value) {
      return option("--set", option + "=" + value);
    }

    /** Three Redis Sentinels. */
    public Builder sentinels() {
      arguments.add("--sentinels");
      return this;
    }

    private Builder option(String name, String value) {
      arguments.add(name);
      arguments.add(value);
      return this;
    }

    /** Starts it; returns when data flow. */
    public Lab up() {
      Lab lab;
      try {
        lab = new Lab(Files.createTempDirectory("antipode-lab-java-"));
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
      Runtime.getRuntime().addShutdownHook(lab.hook);
      List<String> words = new ArrayList<>(List.of("up"));
      words.addAll(arguments);
      words.addAll(List.of("--no-install", "--json", lab.endpoints.toString()));
      try {
        lab.run(UP, words);
      } catch (RuntimeException error) {
        lab.close();
        throw error;
      }
      return lab;
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
    verb("lag", store, server, lag.toMillis() + "ms");
  }

  /** Parts a server from the others; clients still reach it. */
  public void partition(String store, String server) {
    verb("partition", store, server);
  }

  /** Parts a server so that connections stay open, and what is on its way is held. */
  public void partitionSilently(String store, String server) {
    verb("partition", store, server, "--silent");
  }

  /** Ends all partitions; returns when data flow. */
  public void heal() {
    verb("heal");
  }

  /** Ends a server's partitions; returns when data flow. */
  public void heal(String store, String server) {
    verb("heal", store, server);
  }

  /** SIGSTOP. */
  public void freeze(String store, String server) {
    verb("freeze", store, server);
  }

  /** SIGCONT. */
  public void thaw(String store, String server) {
    verb("thaw", store, server);
  }

  /** SIGKILL; {@link #restart} brings it back. */
  public void kill(String store, String server) {
    verb("kill", store, server);
  }

  /** Ends a server and starts it again on its port, with what it had. */
  public void restart(String store, String server, String... options) {
    List<String> words = new ArrayList<>(List.of("restart", store, server));
    words.addAll(Arrays.asList(options));
    verb(words.toArray(String[]::new));
  }

  /** A replica becomes the primary, and the other replicas follow it; whatever was written arrives first. */
  public void promote(String store, String server) {
    verb("promote", store, server);
  }

  /** The same, and {@code writes} writes of the lab's own never arrive anywhere. */
  public void promoteLosing(String store, String server, int writes) {
    verb("promote", store, server, "--lose", Integer.toString(writes));
  }

  /** A server becomes a replica of another one, as an old primary that rejoins. */
  public void repoint(String store, String server, String source) {
    verb("repoint", store, server, source);
  }

  /**
   * Any command of the lab on this lab.
   *
   * @throws LabException with what it printed, where it fails or does not end
   */
  public void verb(String... words) {
    List<String> all = new ArrayList<>(Arrays.asList(words));
    all.addAll(List.of("--lab", endpoints.toString()));
    run(VERB, all);
  }

  private void run(Duration patience, List<String> words) {
    List<String> command = new ArrayList<>(List.of(Repository.root().resolve(".venv/bin/antipode-lab").toString()));
    command.addAll(words);
    Path output = folder.resolve("output-" + Thread.currentThread().getId());
    try {
      Process process = new ProcessBuilder(command)
          .directory(folder.toFile())
          .redirectErrorStream(true)
          .redirectOutput(output.toFile()) // a pipe would stay open in the servers
          .start();
      if (!process.waitFor(patience.toMillis(), TimeUnit.MILLISECONDS)) {
        process.destroy();
        throw new LabException(words, "no end within " + patience + ": " + Files.readString(output));
      }
      if (process.exitValue() != 0) {
        throw new LabException(words, Files.readString(output));
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new LabException(words, "interrupted");
    }
  }

  /** Ends every process of the lab. Twice is harmless. */
  @Override
  public void close() {
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException ending) {
      // the hook itself is at work
    }
    down();
  }

  private synchronized void down() {
    if (closed) {
      return;
    }
    closed = true;
    if (Files.exists(endpoints)) {
      verb("down");
    }
    try (var files = Files.list(folder)) {
      for (Path file : files.toList()) {
        Files.deleteIfExists(file);
      }
      Files.deleteIfExists(folder);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
