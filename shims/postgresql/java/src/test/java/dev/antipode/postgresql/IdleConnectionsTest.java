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
import dev.antipode.internal.engine.Discovery;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.apache.commons.dbcp2.BasicDataSource;
import org.apache.commons.dbcp2.DataSourceConnectionFactory;
import org.apache.commons.dbcp2.PoolableConnection;
import org.apache.commons.dbcp2.PoolableConnectionFactory;
import org.apache.commons.dbcp2.PoolingDataSource;
import org.apache.commons.pool2.impl.GenericObjectPool;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.jdbc.datasource.DelegatingDataSource;

/** Connections that a pool holds, and that lead elsewhere than its words: they are judged before their first use (BAR-68). */
class IdleConnectionsTest extends QuietRegion {
  /** The pools, each round a DataSource of the driver's. */
  enum Pool {
    HIKARI {
      @Override
      DataSource of(DataSource plain) {
        HikariConfig config = new HikariConfig();
        config.setDataSource(plain);
        config.setMaximumPoolSize(4);
        config.setMinimumIdle(0);
        return new HikariDataSource(config);
      }
    },
    HIKARI_WITHIN {
      @Override
      DataSource of(DataSource plain) {
        return new DelegatingDataSource(HIKARI.of(plain));
      }
    },
    TOMCAT {
      @Override
      DataSource of(DataSource plain) {
        org.apache.tomcat.jdbc.pool.DataSource pool = new org.apache.tomcat.jdbc.pool.DataSource();
        pool.setDataSource(plain);
        pool.setInitialSize(0);
        return pool;
      }
    },
    DBCP {
      @Override
      DataSource of(DataSource plain) {
        return new BasicDataSource() {
          @Override
          protected DataSourceConnectionFactory createConnectionFactory() {
            return new DataSourceConnectionFactory(plain);
          }
        };
      }
    },
    DBCP_PLAIN {
      @Override
      DataSource of(DataSource plain) {
        PoolableConnectionFactory factory = new PoolableConnectionFactory(new DataSourceConnectionFactory(plain), null);
        GenericObjectPool<PoolableConnection> pool = new GenericObjectPool<>(factory);
        factory.setPool(pool);
        return new PoolingDataSource<>(pool);
      }
    };

    abstract DataSource of(DataSource plain);
  }

  private final String store = "idle-" + newKey();
  private final PGSimpleDataSource plain = region().plain("a");

  private StoreOptions own() {
    return StoreOptions.named(store);
  }

  private void lead(String server) {
    plain.setServerNames(new String[] {"127.0.0.1"});
    plain.setPortNumbers(new int[] {region().port(server)});
  }

  /** The pool opens so many connections, which are idle then. */
  private static void warm(DataSource pool, int count) throws SQLException {
    List<Connection> open = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      open.add(pool.getConnection());
    }
    for (Connection each : open) {
      each.close();
    }
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

  private BarrierOptions written(String key) {
    DataSource writer = region().wrap("a", own());
    Lineage lineage = Region.inScope(writer, connection -> Region.update(connection, Region.INSERT, key, "v"));
    return BarrierOptions.defaults().lineage(lineage).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);
  }

  /** No barrier passes while the standby lacks a write, for the next connection of the pool may lead there. */
  private void assertJudged(DataSource reader) throws SQLException {
    atTheStandby("SELECT pg_wal_replay_pause()");
    String key = newKey();
    BarrierOptions options = written(key);
    BarrierResult late = Antipode.barrier(options.timeout(Duration.ofMillis(400)));
    List<String> shown = new ArrayList<>();
    List<Connection> all = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      all.add(reader.getConnection());
      shown.add(String.valueOf(Region.shows(all.get(i), key)));
    }
    for (Connection each : all) {
      each.close();
    }
    assertThat(late.satisfied()).as("the pool's connections show " + shown).isFalse();
    atTheStandby("SELECT pg_wal_replay_resume()");
    BarrierResult passed = Antipode.barrier(options.timeout(Duration.ofSeconds(60)));
    assertThat(passed.satisfied()).as(passed.explain()).isTrue();
    assertThat(judged(passed)).anyMatch(address -> address.contains(region().place("b1")));
  }

  private List<String> judged(BarrierResult result) {
    return result.store(store).servers().stream().map(each -> each.address()).toList();
  }

  private static void close(DataSource pool) throws Exception {
    if (pool instanceof AutoCloseable open) {
      open.close();
    } else if (pool instanceof DelegatingDataSource outer) {
      close(outer.getTargetDataSource());
    } else {
      ((org.apache.tomcat.jdbc.pool.DataSource) pool).close();
    }
  }

  /** It opened one connection at the primary and one at the standby, and the wrap takes the first. */
  @ParameterizedTest
  @EnumSource
  void aPoolThatWasWarmedBeforeTheWrap_BAR_68(Pool kind) throws Exception {
    DataSource pool = kind.of(plain);
    try {
      try (Connection first = pool.getConnection()) {
        lead("b1");
        pool.getConnection().close();
        lead("a");
        assertThat(first.isClosed()).isFalse();
      }
      assertJudged(AntipodePostgres.wrap(pool, own()));
    } finally {
      close(pool);
    }
  }

  @ParameterizedTest
  @EnumSource
  void aPoolThatWasLedElsewhereAndBack_BAR_68(Pool kind) throws Exception {
    DataSource pool = kind.of(plain);
    try {
      DataSource reader = AntipodePostgres.wrap(pool, own());
      try (Connection first = pool.getConnection()) {
        lead("b1");
        warm(pool, 1); // by the plain one
        lead("a");
        assertThat(first.isClosed()).isFalse();
      }
      assertJudged(reader);
    } finally {
      close(pool);
    }
  }

  /** The wrap takes an idle connection, which leads where the pool opens none any more. */
  @Test
  void aPoolWhoseWordsWereChangedBeforeTheWrap_BAR_68_BAR_52() throws Exception {
    DataSource pool = Pool.HIKARI.of(plain);
    try {
      warm(pool, 1);
      lead("b1");
      assertJudged(AntipodePostgres.wrap(pool, own()));
    } finally {
      close(pool);
    }
  }

  /** Behind their end their server is judged no more. */
  @Test
  void idleConnectionsThatAreClosed_BAR_68_BAR_62() throws Exception {
    Discovery.hurry(0, TimeUnit.SECONDS.toNanos(30));
    Antipode.configure(Settings.defaults().leftServer(Duration.ZERO));
    try (HikariDataSource pool = (HikariDataSource) Pool.HIKARI.of(plain)) {
      DataSource reader = AntipodePostgres.wrap(pool, own());
      try (Connection first = pool.getConnection()) {
        lead("b1");
        warm(pool, 1);
        lead("a");
        assertThat(first.isClosed()).isFalse();
      }
      BarrierOptions options = written(newKey()).timeout(Duration.ofSeconds(60));
      assertThat(judged(Antipode.barrier(options))).hasSize(2);
      pool.getHikariPoolMXBean().softEvictConnections();
      Region.until(() -> judged(Antipode.barrier(options)).size() == 1, "the standby leaves");
      assertThat(reader).isNotNull();
    } finally {
      Discovery.hurry(TimeUnit.SECONDS.toNanos(5), TimeUnit.SECONDS.toNanos(30));
    }
  }
}
