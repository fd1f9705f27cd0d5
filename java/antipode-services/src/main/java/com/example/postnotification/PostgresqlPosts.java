package com.example.postnotification;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.antipode.StoreOptions;
import dev.antipode.postgresql.AntipodePostgres;
import java.net.URI;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import javax.sql.DataSource;

/** A row a post, by JDBC and a pool. */
final class PostgresqlPosts implements Posts {
  private static final int CONNECTIONS = 16;

  private final DataSource source;

  PostgresqlPosts(Setup setup, String url) {
    URI place = URI.create(url);
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl("jdbc:postgresql://" + place.getHost() + ":" + place.getPort() + place.getPath());
    String[] login = place.getUserInfo().split(":", 2);
    config.setUsername(login[0]);
    if (login.length > 1) {
      config.setPassword(login[1]);
    }
    config.setMaximumPoolSize(CONNECTIONS);
    config.setMinimumIdle(1);
    HikariDataSource pool = new HikariDataSource(config);
    StoreOptions options = StoreOptions.named(Setup.STORE).waitOnRead(setup.waitOnRead()).timeout(setup.timeout());
    source = setup.antipode() ? AntipodePostgres.wrap(pool, options) : pool;
  }

  static void register(Setup setup) {
    AntipodePostgres.register(StoreOptions.named(Setup.STORE).replicas(setup.replicas().values().toArray()));
  }

  @Override
  public void write(String key, byte[] body) throws SQLException {
    try (Connection connection = source.getConnection();
        PreparedStatement statement = connection.prepareStatement("INSERT INTO posts (key, body) VALUES (?, ?)")) {
      statement.setString(1, key);
      statement.setBytes(2, body);
      statement.executeUpdate();
    }
  }

  @Override
  public byte[] read(String key) throws SQLException {
    try (Connection connection = source.getConnection();
        PreparedStatement statement = connection.prepareStatement("SELECT body FROM posts WHERE key = ?")) {
      statement.setString(1, key);
      try (ResultSet rows = statement.executeQuery()) {
        return rows.next() ? rows.getBytes(1) : null;
      }
    }
  }
}
