package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.Policy;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.StoreResult;
import dev.antipode.Verdict;
import dev.antipode.internal.engine.Discovery;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import javax.net.SocketFactory;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;

/** Clients whose settings were changed after they were wrapped, or whose URL is not where they lead (BAR-52). */
class MovedClientsTest extends QuietRegion {
  /** Leads to the port that its argument is, whatever the URL says. */
  public static final class Elsewhere extends SocketFactory {
    private final int port;

    public Elsewhere(String port) {
      this.port = Integer.parseInt(port);
    }

    @Override
    public Socket createSocket() {
      return new Socket() {
        @Override
        public void connect(SocketAddress endpoint, int timeout) throws IOException {
          super.connect(new InetSocketAddress("127.0.0.1", port), timeout);
        }
      };
    }

    @Override
    public Socket createSocket(String host, int asked) throws IOException {
      return new Socket("127.0.0.1", port);
    }

    @Override
    public Socket createSocket(String host, int asked, InetAddress local, int localPort) throws IOException {
      return createSocket(host, asked);
    }

    @Override
    public Socket createSocket(InetAddress host, int asked) throws IOException {
      return createSocket("", asked);
    }

    @Override
    public Socket createSocket(InetAddress host, int asked, InetAddress local, int localPort) throws IOException {
      return createSocket("", asked);
    }
  }

  private final String store = "moved-" + newKey();

  private StoreOptions own() {
    return StoreOptions.named(store);
  }

  @AfterEach
  void replayGoesOn() throws SQLException {
    atTheStandby("SELECT pg_wal_replay_resume()");
  }

  private static void atTheStandby(String text) throws SQLException {
    try (Connection connection = region().plain("b1", "postgres").getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(text);
    }
  }

  /** The first barrier behind the change waits at the standby, which does not replay, and passes when it does. */
  private void waitsAtTheStandby(DataSource writer) throws SQLException {
    atTheStandby("SELECT pg_wal_replay_pause()");
    Lineage lineage = Region.inScope(writer, connection -> Region.update(connection, Region.INSERT, newKey(), "v"));
    BarrierOptions options =
        BarrierOptions.defaults().lineage(lineage).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);
    StoreResult late = Antipode.barrier(options.timeout(Duration.ofMillis(400))).store(store);
    assertThat(late.verdict()).isIn(Verdict.TIMED_OUT, Verdict.UNPROVEN);
    atTheStandby("SELECT pg_wal_replay_resume()");
    BarrierResult passed = Antipode.barrier(options.timeout(Duration.ofSeconds(60)));
    assertThat(passed.complete()).as(passed.explain()).isTrue();
  }

  private static void moveToTheStandby(PGSimpleDataSource source) {
    source.setServerNames(new String[] {"127.0.0.1"});
    source.setPortNumbers(new int[] {region().port("b1")});
  }

  @Test
  void aDataSourceWhoseServersAreChanged_BAR_52() throws SQLException {
    PGSimpleDataSource plain = region().plain("a");
    DataSource reader = AntipodePostgres.wrap(plain, own());
    DataSource writer = region().wrap("a", own());
    moveToTheStandby(plain);
    waitsAtTheStandby(writer);
    assertThat(reader).isNotNull();
  }

  @Test
  void aDataSourceWhoseUrlIsChanged_BAR_52() throws SQLException {
    PGSimpleDataSource plain = region().plain("a");
    DataSource reader = AntipodePostgres.wrap(plain, own());
    DataSource writer = region().wrap("a", own());
    plain.setURL("jdbc:postgresql://127.0.0.1:" + region().port("b1") + ",127.0.0.1:" + region().port("a")
        + "/app?targetServerType=secondary&user=app");
    waitsAtTheStandby(writer);
    assertThat(reader).isNotNull();
  }

  /** Its open connection leads where it led. */
  @Test
  void aDataSourceInAPool_BAR_52() throws SQLException {
    PGSimpleDataSource plain = region().plain("a");
    HikariConfig config = new HikariConfig();
    config.setDataSource(plain);
    config.setMaximumPoolSize(1);
    try (HikariDataSource pool = new HikariDataSource(config)) {
      DataSource wrapped = AntipodePostgres.wrap(pool, own());
      moveToTheStandby(plain);
      waitsAtTheStandby(wrapped);
    }
  }

  private String several(String more) {
    return "jdbc:postgresql://127.0.0.1:" + region().port("a") + ",127.0.0.1:" + region().port("b1") + "/app?user=app" + more;
  }

  /** A connection may reach any of them. */
  @ParameterizedTest
  @ValueSource(strings = {"", "&loadBalanceHosts=true", "&targetServerType=preferPrimary"})
  void allHostsOfADataSourceAreServers_BAR_52(String more) throws SQLException {
    PGSimpleDataSource plain = new PGSimpleDataSource();
    plain.setURL(several(more));
    DataSource reader = AntipodePostgres.wrap(plain, own());
    waitsAtTheStandby(region().wrap("a", own()));
    assertThat(reader).isNotNull();
  }

  @ParameterizedTest
  @ValueSource(strings = {"URL", "class", "route", "read-only"})
  void allHostsOfAPoolAreServers_BAR_52(String way) throws SQLException {
    try (HikariDataSource pool = new HikariDataSource()) {
      pool.setMinimumIdle(0);
      if (way.equals("class")) {
        pool.setDataSourceClassName(PGSimpleDataSource.class.getName());
        pool.addDataSourceProperty("url", several("&loadBalanceHosts=true"));
      } else {
        pool.setJdbcUrl(several(""));
        pool.addDataSourceProperty("loadBalanceHosts", "true");
      }
      DataSource plain = pool;
      if (way.equals("route")) {
        plain = new LazyConnectionDataSourceProxy(pool);
      } else if (way.equals("read-only")) { // what leads to the primary says nothing of where this leads
        PGSimpleDataSource primary = new PGSimpleDataSource();
        primary.setURL(several("&targetServerType=primary"));
        LazyConnectionDataSourceProxy lazy = new LazyConnectionDataSourceProxy(primary);
        lazy.setReadOnlyDataSource(pool);
        plain = lazy;
      }
      DataSource reader = AntipodePostgres.wrap(plain, own());
      waitsAtTheStandby(region().wrap("a", own()));
      assertThat(reader).isNotNull();
    }
  }

  @Test
  void aPoolMayNameTheHostsAsItsClassDoes_BAR_52() {
    assertThat(addresses(Map.of("serverName", "one,another", "portNumber", 5433, "databaseName", "app")))
        .as("as the driver has it")
        .containsExactly("postgresql://one:5432/app", "postgresql://another:5433/app");
    for (Object ports : List.of("5433,5434", new int[] {5433, 5434})) {
      for (Object names : List.of("one,another", new String[] {"one", "another"})) {
        assertThat(addresses(Map.of("serverNames", names, "portNumbers", ports, "databaseName", "app")))
            .containsExactly("postgresql://one:5433/app", "postgresql://another:5434/app");
      }
    }
    assertThat(addresses(Map.of("serverNames", "one,another", "portNumbers", "5433"))).as("no such bean can be").isEmpty();
    assertThat(addresses(Map.of("serverNames", "one,another", "portNumbers", "none"))).isEmpty();
  }

  private static List<String> addresses(Map<String, ?> words) {
    try (HikariDataSource pool = new HikariDataSource()) {
      pool.setDataSourceClassName(PGSimpleDataSource.class.getName());
      words.forEach(pool::addDataSourceProperty);
      return Target.anyOf(Credentials.of(pool), pool).stream().map(Target::address).toList();
    }
  }

  @Test
  void theUrlOfAPoolCountsAndNotWhatItsWordsSayBesides_BAR_52() {
    try (HikariDataSource pool = new HikariDataSource()) {
      pool.setJdbcUrl("jdbc:postgresql://one:5433,another:5434/app");
      pool.addDataSourceProperty("PGHOST", "third");
      pool.addDataSourceProperty("serverName", "third");
      assertThat(Target.anyOf(Credentials.of(pool), pool)).extracting(Target::address)
          .containsExactly("postgresql://one:5433/app", "postgresql://another:5434/app");
    }
  }

  /** The driver takes the primary, whichever that is. */
  @Test
  void thePrimaryOfSeveralHostsIsTheServer_BAR_52() throws SQLException {
    PGSimpleDataSource plain = new PGSimpleDataSource();
    plain.setURL(several("&targetServerType=primary"));
    DataSource writer = AntipodePostgres.wrap(plain, own());
    Lineage lineage = Region.inScope(writer, connection -> Region.update(connection, Region.INSERT, newKey(), "v"));
    BarrierResult passed = Antipode.barrier(BarrierOptions.defaults().lineage(lineage).timeout(Duration.ofSeconds(60)));
    assertThat(passed.store(store).servers()).hasSize(1);
  }

  /** HikariCP takes another URL until it has connected. */
  @Test
  void aPoolWhoseUrlIsChangedBeforeItsFirstUse_BAR_52() throws SQLException {
    try (HikariDataSource pool = new HikariDataSource()) {
      pool.setJdbcUrl("jdbc:postgresql://127.0.0.1:1/app");
      pool.setUsername("app");
      pool.setInitializationFailTimeout(1);
      DataSource reader = AntipodePostgres.wrap(pool, own());
      DataSource writer = region().wrap("a", own());
      pool.setJdbcUrl(region().jdbc("b1"));
      waitsAtTheStandby(writer);
      assertThat(reader).isNotNull();
    }
  }

  /** It is judged as long as the old connection is open, though the client leads elsewhere since; then results are complete. */
  @Test
  void aDataSourceWhoseConnectionIsAtTheServerOfBefore_BAR_62() throws SQLException {
    Discovery.hurry(0, TimeUnit.SECONDS.toNanos(30));
    PGSimpleDataSource plain = region().plain("a");
    DataSource reader = AntipodePostgres.wrap(plain, own());
    DataSource writer = region().wrap("a", own());
    moveToTheStandby(plain);
    try (Connection old = reader.getConnection()) {
      plain.setPortNumbers(new int[] {region().port("a")});
      for (int turn = 0; turn < 3; turn++) {
        waitsAtTheStandby(writer);
      }
      assertThat(old.isClosed()).isFalse();
    } finally {
      Discovery.hurry(0, TimeUnit.SECONDS.toNanos(30));
    }
    Antipode.configure(Settings.defaults().leftServer(Duration.ZERO));
    Lineage lineage = Region.inScope(writer, connection -> Region.update(connection, Region.INSERT, newKey(), "v"));
    BarrierOptions options = BarrierOptions.defaults().lineage(lineage).timeout(Duration.ofSeconds(1))
        .onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);
    String standby = ":" + region().port("b1") + "/";
    try {
      Region.until(() -> {
        BarrierResult result = Antipode.barrier(options);
        return result.complete()
            && result.store(store).servers().stream().noneMatch(each -> each.address().contains(standby));
      }, "it is complete without the standby");
    } finally {
      Discovery.hurry(TimeUnit.SECONDS.toNanos(5), TimeUnit.SECONDS.toNanos(30));
    }
  }

  @Test
  void aFactoryOfSocketsThatLeadsElsewhere_BAR_52() throws SQLException {
    PGSimpleDataSource plain = region().plain("a");
    plain.setSocketFactory(Elsewhere.class.getName());
    plain.setSocketFactoryArg(String.valueOf(region().port("b1")));
    DataSource reader = AntipodePostgres.wrap(plain, own());
    DataSource writer = region().wrap("a", own());
    waitsAtTheStandby(writer);
    assertThat(reader).isNotNull();
  }

  /** The URL of a replica says where that leads, not the client's factory. */
  /** Which of them a reader's connection reaches nobody knows. */
  @Test
  void severalHostsInOneAddressAreUnproven_BAR_52_BAR_59() throws SQLException {
    String several = region().jdbc("a").replaceFirst("(//.*)/", "$1,127.0.0.1:" + region().port("b1") + "/");
    DataSource writer = region().wrap("a", own().replicas(several));
    Lineage lineage = Region.inScope(writer, connection -> Region.update(connection, Region.INSERT, newKey(), "v"));
    StoreResult found = Antipode.barrier(BarrierOptions.defaults().lineage(lineage).onUnproven(Policy.PROCEED)).store(store);
    assertThat(found.verdict()).isEqualTo(Verdict.UNPROVEN);
    assertThat(found.code()).isEqualTo("AP208");
  }

  @Test
  void aReplicaIsReachedWithoutTheClientsFactory_BAR_52() throws SQLException {
    PGSimpleDataSource plain = region().plain("b1");
    plain.setSocketFactory(Elsewhere.class.getName());
    plain.setSocketFactoryArg(String.valueOf(region().port("a")));
    DataSource writer = AntipodePostgres.wrap(plain, own().replicas(region().jdbc("b1")));
    waitsAtTheStandby(writer);
  }
}
