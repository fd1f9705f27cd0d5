package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.RedisClient;

/** What a server pushes beside its answers, on a real one. */
class PushesTest {
  private static final int LOOKS = 300;
  private static final Pattern CALLS = Pattern.compile("cmdstat_info:calls=(\\d+)");

  /** Under many writes each answer has one behind it: the engine is told, and asks in its time. */
  @Test
  void aPushThatComesWithAnAnswerIsNoReasonForAnotherQuestion_BAR_66() throws Exception {
    AtomicInteger pushed = new AtomicInteger();
    try (RedisServers servers = new RedisServers("0ms"); Session session = new Session(Target.of(servers.url("a")), 60_000)) {
      session.track(new Session.Listener() {
        @Override
        public void changed() {
          pushed.incrementAndGet();
        }

        @Override
        public void reset() {}

        @Override
        public void broken(Exception error) {}
      });
      RedisClient asking = servers.client("a");
      RedisClient writing = servers.client("a");
      Thread writer = new Thread(() -> {
        while (!Thread.currentThread().isInterrupted()) {
          writing.set("key", "value");
        }
      });
      writer.start();
      try {
        RedisServers.until(() -> pushed.get() > 10, "it pushes");
        session.look(List.of(), Marks.DEFAULT_KEY);
        int before = asked(asking);
        for (int look = 0; look < LOOKS; look++) {
          session.look(List.of(), Marks.DEFAULT_KEY);
        }
        assertThat(asked(asking) - before).isBetween(LOOKS, LOOKS + LOOKS / 10);
      } finally {
        writer.interrupt();
        writer.join();
      }
    }
  }

  private static int asked(RedisClient client) {
    Matcher calls = CALLS.matcher(client.info("commandstats"));
    assertThat(calls.find()).isTrue();
    return Integer.parseInt(calls.group(1));
  }
}
