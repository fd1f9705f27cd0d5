package dev.antipode.lab;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The process that owns a lab and does its verbs, one after another. The lab ends with it, and it with this JVM. */
final class Driver implements AutoCloseable {
  private static final Duration END = Duration.ofSeconds(30);
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Process process;
  private final Path output;
  private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();

  Driver(Path output) {
    this.output = output;
    try (InputStream script = Driver.class.getResourceAsStream("driver.py")) {
      process = new ProcessBuilder(
              Repository.python().toString(), "-c", new String(script.readAllBytes(), StandardCharsets.UTF_8))
          .redirectError(output.toFile())
          .start();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    Thread reading = new Thread(this::read, "antipode-lab-driver");
    reading.setDaemon(true);
    reading.start();
  }

  private void read() {
    try (BufferedReader reader = process.inputReader(StandardCharsets.UTF_8)) {
      for (String line = reader.readLine(); line != null; line = reader.readLine()) {
        lines.add(line);
      }
    } catch (IOException error) {
      // it has ended
    }
    lines.add("{\"error\": \"the lab's process has ended\"}");
  }

  /** What it says next to this message; calls back where it asks for that. */
  synchronized JsonNode say(Map<String, ?> message, Duration patience, Runnable callback) {
    send(message);
    JsonNode answer = next(message, patience);
    while (answer.has("callback")) {
      RuntimeException failed = null;
      try {
        callback.run();
      } catch (RuntimeException error) {
        failed = error;
      }
      send(failed == null ? Map.of() : Map.of("error", failed.toString()));
      answer = next(message, patience);
      if (failed != null) {
        throw failed;
      }
    }
    if (answer.has("error")) {
      throw new LabException(message.toString(), answer.get("error").asText() + "\n" + printed());
    }
    return answer;
  }

  private void send(Map<String, ?> message) {
    try {
      process.outputWriter(StandardCharsets.UTF_8).write(JSON.writeValueAsString(message) + "\n");
      process.outputWriter(StandardCharsets.UTF_8).flush();
    } catch (IOException error) {
      throw new LabException(message.toString(), error + "\n" + printed());
    }
  }

  private JsonNode next(Map<String, ?> message, Duration patience) {
    try {
      String line = lines.poll(patience.toMillis(), TimeUnit.MILLISECONDS);
      if (line == null) {
        throw new LabException(message.toString(), "no end within " + patience + "\n" + printed());
      }
      return JSON.readTree(line);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new LabException(message.toString(), "interrupted");
    }
  }

  private String printed() {
    try {
      List<String> all = Files.readAllLines(output);
      return String.join("\n", all.subList(Math.max(0, all.size() - 20), all.size()));
    } catch (IOException error) {
      return "";
    }
  }

  @Override
  public void close() {
    try {
      process.outputWriter().close(); // it ends at the end of its input, and takes the lab with it
      if (!process.waitFor(END.toMillis(), TimeUnit.MILLISECONDS)) {
        process.destroyForcibly();
      }
    } catch (IOException error) {
      process.destroyForcibly();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      process.destroy();
    }
  }
}
