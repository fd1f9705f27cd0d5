package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariConfigMXBean;
import com.zaxxer.hikari.HikariDataSource;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.StoreOptions;
import dev.antipode.StoreResult;
import dev.antipode.UnprovenKind;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.PGConnection;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.lookup.AbstractRoutingDataSource;
import org.springframework.transaction.support.TransactionTemplate;

/** HikariCP around and inside the shim, and Spring's transactions over it (SHIM-1, SHIM-11, SCOPE-14). */
class PoolsTest extends QuietRegion {
  private static void waits(Lineage lineage, String key) throws SQLException {
    assertPosition(lineage);
    Antipode.barrier(BarrierOptions.defaults().lineage(lineage).timeout(Duration.ofSeconds(20)));
    assertThat(shows("b1", key)).isNotNull();
  }

  private static HikariConfig pool() {
    HikariConfig config = new HikariConfig();
    config.setMaximumPoolSize(1);
    config.setMinimumIdle(0);
    return config;
  }

  private static HikariDataSource plainPool() {
    HikariConfig config = pool();
    config.setJdbcUrl(region().jdbc("a"));
    config.setUsername("app");
    return new HikariDataSource(config);
  }

  private void commitsAndRollsBack(DataSource pool, boolean isInside) throws SQLException {
    for (int turn = 0; turn < 3; turn++) {
      String key = newKey();
      waits(Region.inScope(pool, connection -> {
        connection.setAutoCommit(false);
        Region.update(connection, Region.INSERT, key, "v");
        connection.commit();
      }), key);
      String own = newKey();
      waits(Region.inScope(pool, connection -> Region.update(connection, Region.INSERT, own, "v")), own);
    }
    // What is open when the connection goes back is rolled back; a pool inside tells nobody, and its next user hears of it.
    try (LineageScope scope = Antipode.scope()) {
      String key = newKey();
      try (Connection connection = pool.getConnection()) {
        connection.setAutoCommit(false);
        Region.update(connection, Region.INSERT, key, "v");
        assertThat(scope.pendingStores()).containsExactly(STORE);
      }
      if (isInside) {
        assertThat(scope.lineage().isComplete()).isFalse();
        pool.getConnection().close();
        assertPosition(scope.lineage()); // an upper bound
      } else {
        assertNothing(scope.lineage());
      }
      assertThat(scope.pendingStores()).isEmpty();
      assertThat(shows("a", key)).isNull();
    }
  }

  @Test
  void aPoolInside() throws SQLException {
    try (HikariDataSource plain = plainPool()) {
      DataSource pool = AntipodePostgres.wrap(plain, options());
      assertThat(pool.unwrap(HikariDataSource.class)).isSameAs(plain);
      commitsAndRollsBack(pool, true);
      try (Connection connection = pool.getConnection()) {
        assertThat(connection.unwrap(PGConnection.class).getBackendPID()).isPositive();
      }
    }
  }

  @Test
  void aPoolAround() throws SQLException {
    HikariConfig config = pool();
    config.setDataSource(source);
    try (HikariDataSource pool = new HikariDataSource(config)) {
      commitsAndRollsBack(pool, false);
    }
  }

  /** SHIM-2: what is between the application and the driver may keep a commit to itself; it is then not done behind it. */
  @Test
  void whatKeepsACommitToItselfIsHeard() throws SQLException {
    DataSource keeping = new DelegatingDataSource(region().plain("a")) {
      @Override
      public Connection getConnection() throws SQLException {
        Connection inner = super.getConnection();
        return (Connection) java.lang.reflect.Proxy.newProxyInstance(
            PoolsTest.class.getClassLoader(), new Class<?>[] {Connection.class}, (proxy, method, args) -> {
              try {
                return method.getName().equals("commit") ? null : method.invoke(inner, args);
              } catch (java.lang.reflect.InvocationTargetException error) {
                throw error.getCause();
              }
            });
      }
    };
    String key = newKey();
    DataSource wrapped = AntipodePostgres.wrap(keeping, options());
    try (LineageScope scope = Antipode.scope()) {
      try (Connection connection = wrapped.getConnection()) {
        connection.setAutoCommit(false);
        Region.update(connection, Region.INSERT, key, "v");
        connection.commit();
        assertThat(scope.pendingStores()).containsExactly(STORE);
      }
      assertThat(scope.lineage().ofStore(STORE)).isEmpty();
      assertThat(scope.lineage().isComplete()).isFalse(); // nobody knows what became of it
    }
    assertThat(shows("a", key)).isNull();
  }

  @Test
  void springsTransactions() throws SQLException {
    try (HikariDataSource plain = plainPool()) {
      DataSource wrapped = AntipodePostgres.wrap(plain, options());
      JdbcTemplate template = new JdbcTemplate(wrapped);
      TransactionTemplate transaction = new TransactionTemplate(new DataSourceTransactionManager(wrapped));
      String key = newKey();
      try (LineageScope scope = Antipode.scope()) {
        transaction.executeWithoutResult(status -> {
          template.update(Region.INSERT, key, "v");
          assertThat(template.queryForObject("SELECT count(*) FROM posts WHERE key = ?", Long.class, key)).isEqualTo(1);
          assertThat(scope.pendingStores()).containsExactly(STORE);
        });
        waits(scope.lineage(), key);
      }
      try (LineageScope scope = Antipode.scope()) {
        assertThatThrownBy(() -> transaction.executeWithoutResult(status -> {
          template.update(Region.INSERT, newKey(), "v");
          throw new IllegalStateException("no");
        })).hasMessage("no");
        assertNothing(scope.lineage());
        assertThat(scope.pendingStores()).isEmpty();
      }
      TransactionTemplate nested = new TransactionTemplate(new DataSourceTransactionManager(wrapped));
      nested.setPropagationBehavior(TransactionTemplate.PROPAGATION_NESTED);
      nested.setReadOnly(false);
      String own = newKey();
      try (LineageScope scope = Antipode.scope()) {
        nested.executeWithoutResult(status -> template.update(Region.INSERT, own, "v"));
        waits(scope.lineage(), own);
      }
      String alone = newKey();
      try (LineageScope scope = Antipode.scope()) {
        template.update(Region.INSERT, alone, "v");
        waits(scope.lineage(), alone);
      }
    }
  }

  /** BAR-3: the wrapped client's own server is waited for where no replica is named, with the pool's own credentials. */
  @Test
  void withoutReplicasTheClientsOwnServerIsAsked() {
    try (HikariDataSource plain = plainPool()) {
      DataSource wrapped = AntipodePostgres.wrap(plain, StoreOptions.named("own"));
      try (LineageScope scope = Antipode.scope()) {
        new JdbcTemplate(wrapped).update(Region.INSERT, newKey(), "v");
        var result = Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofSeconds(10)).stores("own"));
        assertThat(result.satisfied()).isTrue();
        assertThat(scope.lineage().ofStore("own")).hasSize(1);
      }
    }
  }

  private static DataSource late(AtomicBoolean connects) {
    return new DelegatingDataSource(region().plain("b1")) {
      @Override
      public Connection getConnection() throws SQLException {
        if (!connects.get()) {
          throw new SQLException("not yet");
        }
        return super.getConnection();
      }
    };
  }

  /** BAR-52: before its first connection nobody knows where it leads, so the servers that are known prove too little. */
  @Test
  void aPoolThatCannotConnectYetIsWaitedFor() throws Exception {
    AtomicBoolean connects = new AtomicBoolean();
    DataSource late = late(connects);
    StoreOptions plain = StoreOptions.named("late");
    DataSource primary = region().wrap("a", plain);
    DataSource standby = AntipodePostgres.wrap(late, plain);
    String key = newKey();
    Lineage lineage = Region.inScope(primary, connection -> Region.update(connection, Region.INSERT, key, "v"));
    BarrierOptions options =
        BarrierOptions.defaults().lineage(lineage).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);
    StoreResult result = Antipode.barrier(options.timeout(Duration.ofMillis(200))).store("late");
    assertThat(result.kind()).isEqualTo(UnprovenKind.NOT_OPENED);
    connects.set(true);
    BarrierResult known = Antipode.barrier(options.timeout(Duration.ofSeconds(60)));
    assertThat(known.complete()).isTrue();
    assertThat(known.store("late").servers()).hasSize(2);
    assertThat(shows("b1", key)).isEqualTo("v");
    assertThat(standby).isNotNull();
  }

  /** SHIM-50: Spring Boot asks for a pool by an interface, and makes its class of what it gets. */
  @Test
  void whatIsAskedForByAnotherInterfaceIsThePool() throws SQLException {
    try (HikariDataSource plain = plainPool()) {
      DataSource wrapped = AntipodePostgres.wrap(plain, options());
      assertThat(wrapped.unwrap(HikariConfigMXBean.class)).isSameAs(plain);
      assertThat(wrapped.unwrap(DataSource.class)).isSameAs(wrapped);
      assertThat(AntipodePostgres.storeOf(new DelegatingDataSource(wrapped))).hasValue(STORE);
      assertThat(AntipodePostgres.storeOf(new DelegatingDataSource(plain))).isEmpty();
    }
  }

  /** SHIM-50, BAR-52: the first barrier waits for the server, too, to which nothing was routed yet. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void allRoutesAreServersFromTheFirst(boolean isLazy) throws Exception {
    AtomicBoolean reads = new AtomicBoolean();
    AbstractRoutingDataSource routing = new AbstractRoutingDataSource() {
      @Override
      protected Object determineCurrentLookupKey() {
        return reads.get() ? "b1" : "a";
      }
    };
    routing.setTargetDataSources(Map.of("a", region().plain("a"), "b1", region().plain("b1")));
    routing.afterPropertiesSet();
    DataSource outer = isLazy ? new LazyConnectionDataSourceProxy(routing) : routing;
    DataSource wrapped = AntipodePostgres.wrap(outer, StoreOptions.named("routed"));
    String key = newKey();
    Lineage lineage = Region.inScope(wrapped, connection -> Region.update(connection, Region.INSERT, key, "v"));
    BarrierResult result = Antipode.barrier(BarrierOptions.defaults().lineage(lineage).timeout(Duration.ofSeconds(60)));
    assertThat(result.store("routed").servers()).hasSize(2);
    assertThat(shows("b1", key)).isEqualTo("v");
    assertThat(wrapped).isNotNull();
  }

  /** SHIM-50: a lazy connection of Spring's chooses its server when the transaction is known to read, wrapped as plain. */
  @Test
  void aLazyConnectionStaysLazy() throws Exception {
    LazyConnectionDataSourceProxy lazy = new LazyConnectionDataSourceProxy(region().plain("a"));
    lazy.setReadOnlyDataSource(region().plain("b1"));
    DataSource wrapped = AntipodePostgres.wrap(lazy, StoreOptions.named("lazy"));
    JdbcTemplate template = new JdbcTemplate(wrapped);
    TransactionTemplate writing = new TransactionTemplate(new DataSourceTransactionManager(wrapped));
    TransactionTemplate reading = new TransactionTemplate(new DataSourceTransactionManager(wrapped));
    reading.setReadOnly(true);
    String key = newKey();
    try (LineageScope scope = Antipode.scope()) {
      writing.executeWithoutResult(status -> {
        template.update(Region.INSERT, key, "v");
        assertThat(scope.pendingStores()).containsExactly("lazy");
      });
      BarrierResult result = Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofSeconds(60)));
      assertThat(result.store("lazy").servers()).hasSize(2);
      assertThat(reading.<Boolean>execute(status -> template.queryForObject("SELECT pg_is_in_recovery()", Boolean.class)))
          .isTrue();
      assertThat(shows("b1", key)).isEqualTo("v");
    }
    try (Connection connection = wrapped.getConnection()) {
      connection.setAutoCommit(false);
      assertThat(connection.unwrap(Connection.class)).isSameAs(connection);
      assertThat(connection.unwrap(PGConnection.class).getBackendPID()).isPositive();
    }
  }

  /** SHIM-50, BAR-52: where the primary alone answers at the wrap, the other part is asked for until it is known. */
  @Test
  void aPartThatDoesNotAnswerYetIsWaitedFor() throws Exception {
    AtomicBoolean connects = new AtomicBoolean();
    LazyConnectionDataSourceProxy lazy = new LazyConnectionDataSourceProxy(region().plain("a"));
    lazy.setReadOnlyDataSource(late(connects));
    DataSource wrapped = AntipodePostgres.wrap(lazy, StoreOptions.named("half"));
    String key = newKey();
    Lineage lineage = Region.inScope(wrapped, connection -> Region.update(connection, Region.INSERT, key, "v"));
    BarrierOptions options =
        BarrierOptions.defaults().lineage(lineage).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);
    StoreResult result = Antipode.barrier(options.timeout(Duration.ofMillis(200))).store("half");
    assertThat(result.kind()).isEqualTo(UnprovenKind.NOT_OPENED);
    connects.set(true);
    BarrierResult known = Antipode.barrier(options.timeout(Duration.ofSeconds(60)));
    assertThat(known.complete()).isTrue();
    assertThat(known.store("half").servers()).hasSize(2);
    assertThat(shows("b1", key)).isEqualTo("v");
    assertThat(wrapped).isNotNull();
  }
}
