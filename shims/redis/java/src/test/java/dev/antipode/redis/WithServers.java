package dev.antipode.redis;

import dev.antipode.Antipode;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.testing.AntipodeIsolated;
import dev.antipode.testing.CapturedLogs;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.UnifiedJedis;

/** Tests on one lab of two replicas that no test spoils. */
@ExtendWith(AntipodeIsolated.class)
abstract class WithServers {
  static final String STORE = "posts";

  static RedisServers servers;

  RedisClient plain;
  CapturedLogs logs;

  @BeforeAll
  static void start() {
    servers = new RedisServers("5ms", "20ms");
  }

  @AfterAll
  static void end() {
    servers.close();
  }

  @BeforeEach
  void begin() {
    logs = new CapturedLogs();
    plain = servers.client("a");
    plain.flushAll();
    Antipode.configure(Settings.defaults().timeout(Duration.ofSeconds(20)));
  }

  @AfterEach
  void closeClients() {
    logs.close();
    servers.closeClients();
  }

  /** A wrapped client of the primary, with both replicas. */
  UnifiedJedis wrapped() {
    return AntipodeRedis.wrap(plain, options());
  }

  StoreOptions options() {
    return StoreOptions.named(STORE).replicas(servers.url("b1"), servers.url("b2"));
  }

  /** Where the primary is now. */
  Replication here() {
    return Replication.parse(plain.info("replication").getBytes(StandardCharsets.US_ASCII));
  }

  /** How often the primary was asked this command so far. */
  long calls(String command) {
    String line = Replication.words(plain.info("commandstats")).get("cmdstat_" + command);
    return line == null ? 0 : Long.parseLong(line.replaceFirst("calls=(\\d+),.*", "$1"));
  }
}
