package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.StoreOptions;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLParameters;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionFactory;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.SslOptions;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.providers.PooledConnectionProvider;

/** One name leads to a primary and to its replica, whose certificates have that name and no address (BAR-52). */
class NameOfSeveralTest {
  private static final String NAME = "posts.example";
  private static final String PRIMARY = "127.0.0.1";
  private static final String REPLICA = "127.0.0.2";
  private static final String PASSWORD = "changeit";
  private static final int TURNS = 16; // our own connections by the name lead to either server, as a coin falls

  @TempDir private Path folder;

  /** A process in which the name leads to both: a JVM reads its list of names once. */
  static final class Application {
    private Application() {}

    /** Reads at the replica, which is cut off, and waits there for writes; then the replica follows again. */
    public static void main(String[] ports) {
      HostAndPort primary = new HostAndPort(PRIMARY, Integer.parseInt(ports[0]));
      HostAndPort replica = new HostAndPort(REPLICA, Integer.parseInt(ports[1]));
      UnifiedJedis plain = RedisClient.create(primary);
      for (int turn = 0; turn < TURNS; turn++) {
        String store = "posts-" + turn;
        reads(store, new HostAndPort(NAME, Integer.parseInt(ports[2])), turn % 2 == 0 ? options() : parameters());
        BarrierResult cut = waits(AntipodeRedis.wrap(plain, StoreOptions.named(store)), Duration.ofMillis(400));
        System.out.println("while it is cut off: " + cut.satisfied() + cut.explain());
      }
      RedisClient.create(replica).executeCommand(
          new CommandArguments(Protocol.Command.REPLICAOF).add(PRIMARY).add(primary.getPort()));
      for (String store : List.of("posts-0", "posts-1")) {
        BarrierResult last = waits(AntipodeRedis.wrap(plain, StoreOptions.named(store)), Duration.ofSeconds(30));
        System.out.println("when it follows: " + last.complete() + last.explain());
      }
      System.exit(0);
    }

    private static JedisClientConfig options() {
      return DefaultJedisClientConfig.builder().sslOptions(SslOptions.defaults()).build();
    }

    @SuppressWarnings("deprecation") // it is there, and what a URL leads to
    private static JedisClientConfig parameters() {
      SSLParameters verifying = new SSLParameters();
      verifying.setEndpointIdentificationAlgorithm("HTTPS");
      return DefaultJedisClientConfig.builder().ssl(true).sslParameters(verifying).build();
    }

    private static void reads(String store, HostAndPort name, JedisClientConfig config) {
      PooledConnectionProvider provider = new PooledConnectionProvider(
          new ConnectionFactory(name, config), new GenericObjectPoolConfig<Connection>());
      UnifiedJedis client = RedisClient.builder().connectionProvider(provider).build();
      RedisServers.until(() -> {
        provider.getPool().clear();
        return client.info("replication").contains("role:slave");
      }, "a connection leads to the replica");
      AntipodeRedis.wrap(client, StoreOptions.named(store)).get("k");
    }

    private static BarrierResult waits(UnifiedJedis writer, Duration timeout) {
      try (LineageScope scope = Antipode.scope()) {
        writer.set("k", "v");
        return Antipode.barrier(BarrierOptions.defaults().lineage(scope.lineage())
            .timeout(timeout).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED));
      }
    }
  }

  @Test
  void jedisWithTls_BAR_52() throws Exception {
    List<String> encrypted = encrypted();
    try (LoneServer primary = new LoneServer(PRIMARY, encrypted);
        CuttingProxy link = new CuttingProxy(primary.port());
        LoneServer replica = new LoneServer(REPLICA, replicaOf(link.port(), encrypted));
        RedisClient operator = RedisClient.create(REPLICA, replica.port())) {
      RedisServers.until(() -> operator.info("replication").contains("master_link_status:up"), "the replica follows");
      link.moveTo(0); // nobody is there
      RedisServers.until(() -> operator.info("replication").contains("master_link_status:down"), "it is cut off");
      String said = run(primary.port(), replica.port(), Integer.parseInt(encrypted.get(1)));
      assertThat(said).doesNotContain("redis://" + NAME); // it is a rediss:, whatever makes it one
      assertThat(said.lines().filter(line -> line.startsWith("while it is cut off: false"))).as(said).hasSize(TURNS);
      assertThat(said.lines().filter(line -> line.startsWith("when it follows: true"))).as(said).hasSize(2);
    }
  }

  private static List<String> replicaOf(int port, List<String> encrypted) {
    List<String> options = new ArrayList<>(encrypted);
    options.addAll(List.of("--replicaof", PRIMARY, String.valueOf(port)));
    return options;
  }

  /** Return what makes a server encrypt, at one port for all servers, which are told apart by their addresses. */
  private List<String> encrypted() throws IOException, InterruptedException, GeneralSecurityException {
    Path keys = folder.resolve("keys.p12");
    Process made = new ProcessBuilder(
            program("keytool"), "-genkeypair", "-alias", "server", "-keyalg", "EC", "-dname", "CN=server",
            "-ext", "SAN=dns:" + NAME, "-storetype", "PKCS12", "-keystore", keys.toString(), "-storepass", PASSWORD)
        .inheritIO()
        .start();
    assertThat(made.waitFor()).isZero();
    KeyStore store = KeyStore.getInstance(keys.toFile(), PASSWORD.toCharArray());
    KeyStore trusted = KeyStore.getInstance("PKCS12");
    trusted.load(null, null);
    trusted.setCertificateEntry("server", store.getCertificate("server"));
    try (OutputStream out = Files.newOutputStream(folder.resolve("trusted.p12"))) {
      trusted.store(out, PASSWORD.toCharArray());
    }
    String certificate = pem("CERTIFICATE", store.getCertificate("server").getEncoded());
    String key = pem("PRIVATE KEY", store.getKey("server", PASSWORD.toCharArray()).getEncoded());
    return List.of(
        "--tls-port", String.valueOf(ThreadLocalRandom.current().nextInt(61_000, 65_536)), "--tls-auth-clients", "no",
        "--tls-cert-file", certificate, "--tls-ca-cert-file", certificate, "--tls-key-file", key);
  }

  private String pem(String kind, byte[] octets) throws IOException {
    String text = Base64.getMimeEncoder().encodeToString(octets);
    Path file = folder.resolve(kind + ".pem");
    Files.writeString(file, "-----BEGIN " + kind + "-----\n" + text + "\n-----END " + kind + "-----\n");
    return file.toString();
  }

  private static String program(String name) {
    return Path.of(System.getProperty("java.home"), "bin", name).toString();
  }

  private String run(int... ports) throws IOException, InterruptedException {
    Path names = folder.resolve("names");
    Files.writeString(names, PRIMARY + " " + NAME + "\n" + REPLICA + " " + NAME + "\n" + PRIMARY + " localhost\n");
    List<String> command = new ArrayList<>(List.of(
        program("java"), "-Xmx128m", "-Djdk.net.hosts.file=" + names,
        "-Djavax.net.ssl.trustStore=" + folder.resolve("trusted.p12"), "-Djavax.net.ssl.trustStorePassword=" + PASSWORD,
        "-cp", System.getProperty("java.class.path"), Application.class.getName()));
    for (int port : ports) {
      command.add(String.valueOf(port));
    }
    Path output = folder.resolve("output");
    Process process =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile()).start();
    boolean hasEnded = process.waitFor(100, TimeUnit.SECONDS);
    process.destroyForcibly().waitFor();
    String said = Files.readString(output);
    assertThat(hasEnded).as(said).isTrue();
    return said;
  }
}
