package dev.antipode.postgresql;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.postgresql.Driver;
import org.postgresql.PGProperty;

/** The user, password and TLS of a DataSource, as its kind of bean tells them: our own connections use the same. */
final class Credentials {
  /** What gives a session other settings than its user has. */
  static final List<PGProperty> OF_SESSIONS =
      List.of(PGProperty.OPTIONS, PGProperty.CURRENT_SCHEMA, PGProperty.STRING_TYPE);

  /** What leads a connection elsewhere than its host and port say. */
  static final List<PGProperty> OF_SOCKETS = List.of(PGProperty.SOCKET_FACTORY, PGProperty.SOCKET_FACTORY_ARG);

  /** What a bean of the driver's, which a pool makes by its class, calls otherwise. */
  private static final Map<Object, String> OF_BEANS = Map.of(
      "serverName", PGProperty.PG_HOST.getName(),
      "portNumber", PGProperty.PG_PORT.getName(),
      "databaseName", PGProperty.PG_DBNAME.getName());

  private static final int DEEPEST = 3;

  private Credentials() {}

  /** What is known; empty where nothing is. */
  static Properties of(DataSource source) {
    Properties found = new Properties();
    collect(source, found, DEEPEST);
    return found;
  }

  /** Those of some words that give a session its settings. */
  static Properties ofSessions(Properties words) {
    Properties found = new Properties();
    for (PGProperty property : OF_SESSIONS) {
      put(found, property.getName(), words.getProperty(property.getName()));
    }
    return found;
  }

  /** Whether a pool says that it changes each session that it opens: by SQL of its own, or to another schema. */
  static boolean changesSessions(DataSource source) {
    return changesSessions(source, DEEPEST);
  }

  private static boolean changesSessions(Object source, int depth) {
    boolean isSaid = Stream.of("getConnectionInitSql", "getInitSQL", "getSchema", "getDefaultSchema")
        .anyMatch(name -> first(source, name) != null);
    if (isSaid || asked(source, "getConnectionInitSqls") instanceof Collection<?> texts && !texts.isEmpty()) {
      return true;
    }
    Object inner = inside(source);
    return inner instanceof DataSource && depth > 0 && changesSessions(Proxies.plain(inner), depth - 1);
  }

  private static void collect(Object source, Properties found, int depth) {
    collect(first(source, "getJdbcUrl", "getURL", "getUrl"), found);
    put(found, "user", first(source, "getUsername", "getUser"));
    put(found, "password", first(source, "getPassword"));
    if (asked(source, "getDataSourceProperties") instanceof Properties more) {
      collect(more.getProperty("url", more.getProperty("URL")), found);
      more.forEach((name, value) -> found.setProperty(OF_BEANS.getOrDefault(name, String.valueOf(name)), String.valueOf(value)));
    }
    Object inner = inside(source);
    if (inner instanceof DataSource && depth > 0) {
      collect(Proxies.plain(inner), found, depth - 1);
    }
  }

  private static void collect(String url, Properties found) {
    Properties parsed = url == null || !url.startsWith("jdbc:postgresql:") ? null : Driver.parseURL(url, new Properties());
    if (parsed != null) {
      parsed.stringPropertyNames().forEach(name -> found.setProperty(name, parsed.getProperty(name)));
    }
  }

  private static Object inside(Object source) {
    Object inner = asked(source, "getDataSource");
    return inner == null ? asked(source, "getTargetDataSource") : inner;
  }

  private static void put(Properties found, String name, String value) {
    if (value != null) {
      found.setProperty(name, value);
    }
  }

  private static String first(Object source, String... names) {
    for (String name : names) {
      if (asked(source, name) instanceof String text && !text.isEmpty()) {
        return text;
      }
    }
    return null;
  }

  /** What a getter gives; null where there is none. */
  static Object asked(Object source, String name) {
    try {
      Method method = source.getClass().getMethod(name);
      return method.invoke(source);
    } catch (NoSuchMethodException | IllegalAccessException | InvocationTargetException error) {
      return null; // it is another kind of bean
    }
  }
}
