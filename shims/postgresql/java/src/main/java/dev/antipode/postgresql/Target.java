package dev.antipode.postgresql;

import dev.antipode.ConfigurationException;
import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.Set;
import javax.sql.DataSource;
import org.postgresql.Driver;
import org.postgresql.PGProperty;
import org.postgresql.core.BaseConnection;
import org.postgresql.util.HostSpec;

/** How to reach a server beside the application's own connections: with its host, user, password and TLS. */
final class Target {
  private static final String JDBC = "jdbc:postgresql:";

  /** What is the application's own business, or chooses among servers. */
  private static final List<PGProperty> DROPPED = List.of(
      PGProperty.OPTIONS,
      PGProperty.APPLICATION_NAME,
      PGProperty.REPLICATION,
      PGProperty.TARGET_SERVER_TYPE,
      PGProperty.LOAD_BALANCE_HOSTS,
      PGProperty.CONNECT_TIMEOUT,
      PGProperty.LOGIN_TIMEOUT,
      PGProperty.SOCKET_TIMEOUT,
      PGProperty.DEFAULT_ROW_FETCH_SIZE,
      PGProperty.READ_ONLY,
      PGProperty.AUTOSAVE,
      PGProperty.PREFER_QUERY_MODE);

  private final String hosts;
  private final String address;
  private final Properties words;
  private final DataSource borrowed;

  private Target(Properties words, DataSource borrowed) {
    this.hosts = hostsOf(words);
    this.address = "postgresql:" + hosts + socketsOf(words);
    this.words = words;
    this.borrowed = borrowed;
    DROPPED.forEach(property -> words.remove(property.getName()));
  }

  /**
   * The servers of a URL, {@code jdbc:postgresql://host:port/database?…} or {@code postgresql://user:password@host…}.
   *
   * @param credentials the user, password and TLS of the wrapped client, for a URL that names none
   * @throws ConfigurationException for what is no URL of PostgreSQL's
   */
  static Target of(String url, Properties credentials) {
    String text = url.startsWith("jdbc:") ? url.substring("jdbc:".length()) : url;
    String rest = null;
    for (String scheme : PostgresqlShim.SCHEMES) {
      if (text.startsWith(scheme + ":")) {
        rest = text.substring(scheme.length() + 1);
      }
    }
    if (rest == null) {
      throw new ConfigurationException("AP502", "no server's URL: '" + withoutUser(url) + "'");
    }
    Properties own = new Properties();
    int slash = rest.indexOf('/', 2);
    int at = rest.startsWith("//") ? rest.lastIndexOf('@', slash < 0 ? rest.length() : slash) : -1;
    if (at > 0) {
      String[] user = rest.substring(2, at).split(":", 2);
      own.setProperty("user", decoded(user[0]));
      if (user.length == 2) {
        own.setProperty("password", decoded(user[1]));
      }
      rest = "//" + rest.substring(at + 1);
    }
    Properties parsed = Driver.parseURL(JDBC + rest, new Properties());
    if (parsed == null) {
      throw new ConfigurationException("AP502", "no server's URL: '" + withoutUser(url) + "'");
    }
    parsed.putAll(own);
    boolean namesUser = parsed.getProperty("user") != null;
    Properties words = new Properties();
    credentials.forEach((key, value) -> {
      boolean isOfSockets = Credentials.OF_SOCKETS.stream().anyMatch(each -> each.getName().equals(key));
      if (isOfSockets) {
        return; // it leads the client's own connections alone
      }
      if (!key.equals("password") || !namesUser || parsed.getProperty("user").equals(credentials.getProperty("user"))) {
        words.put(key, value);
      }
    });
    for (String name : parsed.stringPropertyNames()) { // with what the driver fills in by itself
      words.setProperty(name, parsed.getProperty(name));
    }
    return new Target(words, null);
  }

  /**
   * Return the servers that connections of a client lead to by its settings as they are now (BAR-52): where each may lead to
   * another, all. Where the primary of several is taken, one is opened as the client would.
   *
   * @throws SQLException where it leads nowhere
   */
  static List<Target> ofSettings(Properties settings, DataSource borrowed, int timeoutMillis) throws SQLException {
    List<Target> any = anyOf(settings, borrowed);
    if (!any.isEmpty()) {
      return any;
    }
    Target target = new Target(copyOf(settings), borrowed);
    if (!namesSeveral(target.address)) {
      return List.of(target);
    }
    Properties all = copyOf(settings);
    all.setProperty(PGProperty.LOGIN_TIMEOUT.getName(), String.valueOf(Math.max(1, timeoutMillis / 1000)));
    try (Connection connection = DriverManager.getConnection(JDBC + target.hosts, all)) {
      return List.of(of(connection.unwrap(BaseConnection.class), settings, borrowed));
    }
  }

  /**
   * Return the servers of which a client's settings let any take a connection ({@code loadBalanceHosts}, or where the one
   * before does not answer); none where they name one, or the primary is taken.
   */
  static List<Target> anyOf(Properties settings, DataSource borrowed) {
    String[] hosts = settings.getProperty(PGProperty.PG_HOST.getName(), "").split(",");
    String[] ports = settings.getProperty(PGProperty.PG_PORT.getName(), "5432").split(",");
    String type = settings.getProperty(PGProperty.TARGET_SERVER_TYPE.getName(), "any");
    if (hosts.length == 1 || Set.of("primary", "master").contains(type.toLowerCase(Locale.ROOT))) {
      return List.of();
    }
    List<Target> any = new ArrayList<>(hosts.length);
    for (int i = 0; i < hosts.length; i++) {
      Properties words = copyOf(settings);
      words.setProperty(PGProperty.PG_HOST.getName(), hosts[i]);
      words.setProperty(PGProperty.PG_PORT.getName(), ports[Math.min(i, ports.length - 1)]);
      any.add(new Target(words, borrowed));
    }
    return any;
  }

  /** Return whether an address is none of one server: a reader's connection may reach another of them than ours. */
  static boolean namesSeveral(String address) {
    int from = address.indexOf("//") + 2;
    return address.substring(from, address.indexOf('/', from)).contains(",");
  }

  private static Properties copyOf(Properties words) {
    Properties copy = new Properties();
    copy.putAll(words);
    return copy;
  }

  /**
   * The very server that a connection has reached.
   *
   * @param credentials of the client, with its factory of sockets
   */
  static Target of(BaseConnection physical, Properties credentials, DataSource borrowed) {
    HostSpec host = physical.getQueryExecutor().getHostSpec();
    Properties words = new Properties();
    words.putAll(credentials);
    words.setProperty(PGProperty.PG_HOST.getName(), host.getHost());
    words.setProperty(PGProperty.PG_PORT.getName(), String.valueOf(host.getPort()));
    words.setProperty(PGProperty.PG_DBNAME.getName(), physical.getQueryExecutor().getDatabase());
    words.setProperty("user", physical.getQueryExecutor().getUser());
    return new Target(words, borrowed);
  }

  private static String hostsOf(Properties words) {
    String[] hosts = words.getProperty(PGProperty.PG_HOST.getName(), "localhost").split(",");
    String[] ports = words.getProperty(PGProperty.PG_PORT.getName(), "5432").split(",");
    StringBuilder places = new StringBuilder();
    for (int i = 0; i < hosts.length; i++) {
      boolean isNewAddress = hosts[i].contains(":") && !hosts[i].startsWith("[");
      places.append(i == 0 ? "" : ",").append(isNewAddress ? "[" + hosts[i] + "]" : hosts[i]);
      places.append(':').append(ports[Math.min(i, ports.length - 1)]);
    }
    String database = words.getProperty(PGProperty.PG_DBNAME.getName(), words.getProperty("user", ""));
    return "//" + places + "/" + database;
  }

  /** What tells a server apart that a factory of sockets leads to: not by host and port. */
  private static String socketsOf(Properties words) {
    String factory = words.getProperty(PGProperty.SOCKET_FACTORY.getName());
    String argument = words.getProperty(PGProperty.SOCKET_FACTORY_ARG.getName()); // it may be private
    return factory == null ? ""
        : " by " + factory + (argument == null ? "" : "#" + Integer.toHexString(argument.hashCode()));
  }

  private static String decoded(String text) {
    return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
  }

  private static String withoutUser(String url) {
    return url.substring(url.lastIndexOf('@') + 1);
  }

  /** Its name for people and for telling servers apart: no credentials. */
  String address() {
    return address;
  }

  /** Its user, password and TLS. */
  Properties words() {
    return words;
  }

  /**
   * A connection of our own; one of the application's pool where only that knows the password.
   *
   * @throws IOException where there is none
   */
  Session open(int timeoutMillis) throws IOException {
    return open(timeoutMillis, new Properties());
  }

  /** One on which nothing is prepared: for what may be a pooler. */
  Session openSimple(int timeoutMillis) throws IOException {
    Properties more = new Properties();
    more.setProperty(PGProperty.PREFER_QUERY_MODE.getName(), "simple");
    return open(timeoutMillis, more);
  }

  /** One on which the server speaks of its log (the attribute REPLICATION). */
  Session openReplicating(int timeoutMillis) throws IOException {
    Properties more = new Properties();
    more.setProperty(PGProperty.REPLICATION.getName(), "database");
    more.setProperty(PGProperty.ASSUME_MIN_SERVER_VERSION.getName(), "9.4");
    more.setProperty(PGProperty.PREFER_QUERY_MODE.getName(), "simple");
    return open(timeoutMillis, more);
  }

  private Session open(int timeoutMillis, Properties more) throws IOException {
    String seconds = String.valueOf(Math.max(1, (timeoutMillis + 999) / 1000));
    Properties all = new Properties();
    all.putAll(words);
    all.setProperty(PGProperty.APPLICATION_NAME.getName(), "antipode");
    all.setProperty(PGProperty.CONNECT_TIMEOUT.getName(), seconds);
    all.setProperty(PGProperty.SOCKET_TIMEOUT.getName(), seconds);
    all.setProperty(PGProperty.PREPARE_THRESHOLD.getName(), "1");
    all.putAll(more);
    try {
      Connection connection = DriverManager.getConnection(JDBC + hosts, all);
      return new Session(connection, timeoutMillis);
    } catch (SQLException error) {
      boolean isRefused = error.getSQLState() != null && error.getSQLState().startsWith("28");
      if (!isRefused || borrowed == null || !more.isEmpty()) {
        throw new IOException(error.getMessage(), error);
      }
      return borrow(timeoutMillis);
    }
  }

  private Session borrow(int timeoutMillis) throws IOException {
    try {
      Connection connection = borrowed.getConnection();
      BaseConnection physical = connection.unwrap(BaseConnection.class);
      if (of(physical, words, null).address.equals(address)) {
        return new Session(connection, timeoutMillis);
      }
      connection.close();
      throw new IOException("the application's pool leads to another server than " + address);
    } catch (SQLException error) {
      throw new IOException(error.getMessage(), error);
    }
  }

  @Override
  public String toString() {
    return address;
  }
}
