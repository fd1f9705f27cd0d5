package com.example.postnotification;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Stream;

/**
 * The process that hosts services: benchmarks/services.md. Its arguments are their names; {@code courier} and its words
 * make it a courier (benchmarks/deliveries.md).
 */
public final class Host {
  private static final Map<String, Function<Site, Service>> SERVICES = Map.of(
      "post-upload", PostUpload::new,
      "post-storage-a", PostWriter::new,
      "notifier", Notifier::new,
      "follower-notify", Follower::new,
      "post-storage-b", PostReader::new,
      "worker", Worker::new);

  /** Strongly held: a logger that nobody holds forgets its level. */
  private static final List<Logger> QUIET =
      Stream.of("org.apache", "com.zaxxer").map(Logger::getLogger).toList();

  private Host() {}

  /** Hosts the services until standard input ends. */
  public static void main(String[] names) throws Exception {
    QUIET.forEach(logger -> logger.setLevel(Level.WARNING));
    if (names.length > 0 && names[0].equals("courier")) {
      Courier.run(Arrays.copyOfRange(names, 1, names.length));
      return;
    }
    if (names.length > 0 && names[0].equals("adversary")) {
      Adversary.run();
      System.exit(0);
    }
    Path folder = Files.createTempDirectory("antipode-services-");
    int code = 0;
    try {
      host(List.of(names), folder.toFile());
    } catch (Exception | Error error) {
      error.printStackTrace();
      code = 1;
    }
    try (Stream<Path> files = Files.walk(folder)) {
      files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
    }
    System.exit(code); // with whatever is under way; what is recorded is written then
  }

  private static void host(List<String> names, File folder) throws Exception {
    if (names.isEmpty() || !SERVICES.keySet().containsAll(names)) {
      throw new IllegalArgumentException(names + ": want some of " + SERVICES.keySet());
    }
    Map<String, Door> doors = new LinkedHashMap<>();
    Map<String, Integer> ports = new LinkedHashMap<>();
    for (String name : names) {
      doors.put(name, new Door(name, folder));
      ports.put(name, doors.get(name).port());
    }
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    say(Answer.JSON.writeValueAsString(ports));
    String line = input.readLine();
    if (line == null) {
      return;
    }
    Site site = new Site(Setup.read(line));
    for (Map.Entry<String, Door> door : doors.entrySet()) {
      Service service = SERVICES.get(door.getKey()).apply(site);
      door.getValue().open(service, site.setup().antipode());
      service.start();
    }
    say("ready");
    for (line = input.readLine(); line != null; line = input.readLine()) {
      site.route(Setup.read(line));
      say("ready");
    }
  }

  private static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}
