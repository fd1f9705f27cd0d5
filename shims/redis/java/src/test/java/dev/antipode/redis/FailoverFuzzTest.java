package dev.antipode.redis;

import static dev.antipode.redis.RedisServers.STORE;

import dev.antipode.StoreOptions;
import dev.antipode.testing.FailoverDriver;
import dev.antipode.testing.FailoverFuzzer;
import dev.antipode.testing.FailoverTally;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.exceptions.JedisException;

/** The failover fuzzer on real servers (EPOCH-27). More runs: {@code -Dantipode.fuzz.runs=160 -Dantipode.fuzz.seed=1}. */
class FailoverFuzzTest {
  private static final int MARK_PERIOD_MILLIS = 60; // time is scaled: failovers come every few hundred ms

  @ParameterizedTest
  @EnumSource(names = {"JEDIS", "LETTUCE"})
  @Timeout(840)
  void noFalsePassAndNoHang_EPOCH_27(ClientKind kind) {
    int runs = Integer.getInteger("antipode.fuzz.runs", 2);
    long seed = Long.getLong("antipode.fuzz.seed", 1);
    FailoverTally tally = FailoverFuzzer.run(each -> new Servers(kind), runs, seed);
    System.out.println("failovers of Redis with " + kind + ": " + tally);
    tally.check(runs < 100 ? 1 : 0.01, 0); // a few runs say nothing of shares
  }

  private static final class Servers implements FailoverDriver {
    private static final List<String> NAMES = List.of("a", "b1", "b2");

    private RedisServers servers;
    private final Map<String, RedisClient> plain = new HashMap<>();
    private final Map<String, TestClient> wrapped = new HashMap<>();
    private final ClientKind kind;

    Servers(ClientKind kind) {
      this.kind = kind;
    }

    @Override
    public void begin() {
      Marks.periodMillis = MARK_PERIOD_MILLIS;
      servers = new RedisServers("2ms", "10ms");
      List<String> urls = NAMES.stream().map(servers::url).toList();
      for (String name : NAMES) {
        plain.put(name, servers.client(name));
        wrapped.put(name, kind.wrap(servers.url(name), StoreOptions.named(name()).replicas(urls)));
      }
    }

    @Override
    public void close() {
      Marks.periodMillis = 1000;
      wrapped.values().forEach(TestClient::close);
      if (servers != null) {
        servers.close();
      }
    }

    @Override
    public List<String> servers() {
      return NAMES;
    }

    @Override
    public String primary() {
      return servers.primary();
    }

    @Override
    public List<String> replicas() {
      return servers.replicas();
    }

    @Override
    public String address(String server) {
      return ":" + servers.lab().server(STORE, server).port();
    }

    @Override
    public void write(String server, String key, String value) {
      wrapped.get(server).call("SET", key, value);
    }

    @Override
    public ValueCheck shows(String server, String key, String value) {
      try {
        return value.equals(plain.get(server).get(key)) ? ValueCheck.YES : ValueCheck.NO;
      } catch (JedisException error) {
        return ValueCheck.UNKNOWN;
      }
    }

    @Override
    public Object history(String server) {
      Map<String, String> found;
      try {
        found = Replication.words(plain.get(server).info());
      } catch (JedisException error) {
        return null;
      }
      boolean isReplaced = "1".equals(found.get("master_sync_in_progress")) || "1".equals(found.get("loading"));
      return isReplaced ? null : found.get("run_id") + " " + found.get("master_replid");
    }

    @Override
    public void settleMarks() {
      pause(3 * MARK_PERIOD_MILLIS);
    }

    private static void pause(long millis) {
      try {
        Thread.sleep(millis); // the time that marks have in real life; nothing is asserted of it
      } catch (InterruptedException interrupted) {
        throw new AssertionError(interrupted);
      }
    }

    private void verb(String verb, List<?> words, Map<String, ?> named) {
      servers.lab().verb(STORE, verb, words, named, () -> {});
    }

    @Override
    public void lag(String replica, int milliseconds) {
      servers.lab().lag(STORE, replica, Duration.ofMillis(milliseconds));
    }

    @Override
    public void cut(String replica, RandomGenerator chance) {
      verb("partition", List.of(replica), Map.of("mode", chance.nextBoolean() ? "cut" : "silent"));
    }

    @Override
    public void heal(String replica, boolean wait) {
      verb("heal", List.of(replica), Map.of("wait", wait));
    }

    @Override
    public void restartReplica(String replica, Runnable write, boolean wait) {
      verb("save", List.of(replica), Map.of());
      write.run();
      verb("restart", List.of(replica, "rdb"), Map.of("crash", true, "wait", wait));
    }

    @Override
    public void promote(String replica, Runnable lost) {
      if (lost == null) {
        verb("promote", List.of(replica), Map.of("lose", 0));
      } else {
        servers.lab().promoteLosing(STORE, replica, lost);
      }
    }

    @Override
    public void rejoin(String server, boolean wait) {
      verb("heal", List.of(), Map.of("wait", false));
      verb("repoint", List.of(server, primary()), Map.of("wait", wait));
    }

    @Override
    public boolean mayCrashPrimary() {
      return true;
    }

    @Override
    public void crashPrimary(Runnable write) {
      String primary = primary();
      verb("save", List.of(primary), Map.of());
      write.run();
      verb("restart", List.of(primary, "rdb"), Map.of("crash", true));
    }

    @Override
    public void calm() {
      servers.lab().heal();
      for (String name : NAMES) {
        if (!name.equals(primary())) {
          lag(name, 0);
          if (!replicas().contains(name)) {
            servers.lab().repoint(STORE, name, primary());
          }
        }
      }
    }

    @Override
    public void waitCaughtUp() {
      replicas().forEach(name -> verb("wait_caught_up", List.of(name), Map.of()));
    }
  }
}
