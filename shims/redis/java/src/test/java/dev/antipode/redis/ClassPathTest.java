package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.LineageScope;
import dev.antipode.StoreOptions;
import io.lettuce.core.RedisURI;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.RedisClient;

/** Who uses one client does not need the other on the class path. */
class ClassPathTest extends WithServers {
  /** What a process does that has Lettuce alone. */
  static final class WithLettuce {
    private WithLettuce() {}

    /** Writes, registers by a URL, waits. */
    public static void main(String[] urls) {
      StoreOptions options = StoreOptions.named(STORE).replicas(urls[1]);
      try (LineageScope scope = Antipode.scope()) {
        AntipodeLettuce.register(options);
        AntipodeLettuce.wrap(io.lettuce.core.RedisClient.create(RedisURI.create(urls[0])).connect(), options)
            .sync()
            .set("k", "lettuce");
        System.out.println(scope.lineage().isComplete() + " " + Antipode.barrier(BarrierOptions.defaults()).satisfied());
      }
      System.exit(0);
    }
  }

  /** What a process does that has Jedis alone. */
  static final class WithJedis {
    private WithJedis() {}

    /** Writes, registers by a URL, waits. */
    public static void main(String[] urls) {
      StoreOptions options = StoreOptions.named(STORE).replicas(urls[1]);
      try (LineageScope scope = Antipode.scope()) {
        AntipodeRedis.register(options);
        AntipodeRedis.wrap(RedisClient.create(urls[0]), options).set("k", "jedis");
        System.out.println(scope.lineage().isComplete() + " " + Antipode.barrier(BarrierOptions.defaults()).satisfied());
      }
      System.exit(0);
    }
  }

  private String run(Class<?> program, List<String> without) throws IOException, InterruptedException {
    String path = Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
        .filter(entry -> without.stream().noneMatch(word -> Path.of(entry).getFileName().toString().contains(word)))
        .collect(Collectors.joining(File.pathSeparator));
    Path output = Files.createTempFile("antipode-class-path-", ".txt");
    Process process = new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx128m", "-cp", path, program.getName(), servers.url("a"), servers.url("b1"))
        .redirectErrorStream(true)
        .redirectOutput(output.toFile())
        .start();
    boolean hasEnded = process.waitFor(50, TimeUnit.SECONDS);
    process.destroyForcibly();
    String said = Files.readString(output);
    Files.delete(output);
    assertThat(hasEnded).as(said).isTrue();
    return said;
  }

  @Test
  void lettuceWithoutJedis() throws Exception {
    assertThat(run(WithLettuce.class, List.of("jedis", "commons-pool2"))).contains("true true");
    assertThat(plain.get("k")).isEqualTo("lettuce");
  }

  @Test
  void jedisWithoutLettuce() throws Exception {
    assertThat(run(WithJedis.class, List.of("lettuce", "netty", "reactor"))).contains("true true");
    assertThat(plain.get("k")).isEqualTo("jedis");
  }
}
