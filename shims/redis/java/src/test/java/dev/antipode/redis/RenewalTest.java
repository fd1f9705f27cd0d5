package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.UnifiedJedis;

/** The next connection to a server is opened beside the one that answers (BAR-69). */
class RenewalTest extends WithServers {
  private Lineage written(UnifiedJedis posts) {
    try (LineageScope scope = Antipode.scope()) {
      posts.set("k", "v");
      return scope.lineage();
    }
  }

  /** Nobody stands still while it is opened, however long that takes. */
  @Test
  void theOneThatIsThereAnswersUntilTheNextOneStands_BAR_69() {
    Antipode.configure(Settings.defaults().reconnect(Duration.ofSeconds(10)));
    BarrierOptions options = BarrierOptions.defaults().onTimeout(Policy.PROCEED);
    CountDownLatch gate = new CountDownLatch(1);
    try (CuttingProxy proxy = new CuttingProxy(servers.servers().get("b1").port())) {
      String url = "redis://127.0.0.1:" + proxy.port();
      UnifiedJedis posts = AntipodeRedis.wrap(plain, StoreOptions.named(STORE).replicas(url));
      Lineage first = written(posts);
      RedisServers.until(() -> Antipode.barrier(options.lineage(first)).satisfied(), "it passes");
      proxy.holdNew(gate);
      RedisServers.until(
          () -> Antipode.barrier(options.lineage(written(posts))).satisfied() && proxy.held() > 0, "it is renewed");
      assertThat(Antipode.barrier(options.lineage(written(posts)).timeout(Duration.ofSeconds(1))).satisfied()).isTrue();
      assertThat(proxy.held()).isEqualTo(1);
      gate.countDown();
      RedisServers.until(() -> Antipode.barrier(options.lineage(written(posts))).satisfied(), "it goes on");
    } finally {
      gate.countDown();
    }
  }
}
