package dev.antipode.postgresql;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.postgresql.Driver;
import org.postgresql.PGProperty;
import org.postgresql.ds.PGSimpleDataSource;

/** The user, password and TLS of a DataSource, as its kind of bean tells them: our own connections use the same. */
final class Credentials {
  /** What leads a connection elsewhere than its host and port say. */
  static final List<PGProperty> OF_SOCKETS = List.of(PGProperty.SOCKET_FACTORY, PGProperty.SOCKET_FACTORY_ARG);

  private static final int DEEPEST = 3;

  private Credentials() {}

  /** What is known; empty where nothing is. */
  static Properties of(DataSource source) {
    Properties found = new Properties();
    collect(source, found, DEEPEST);
    return found;
  }

  private static void collect(Object source, Properties found, int depth) {
    boolean isMadeByClass = first(source, "getDataSourceClassName") != null; // then its words are those of that class
    if (asked(source, "getDataSourceProperties") instanceof Properties more) {
      more.forEach((name, value) -> found.setProperty(String.valueOf(name), String.valueOf(value)));
      if (isMadeByClass) {
        bean(more).ifPresent(bean -> collect(bean, found, 0));
      }
    }
    put(found, "user", first(source, "getUsername", "getUser"));
    put(found, "password", first(source, "getPassword"));
    if (!isMadeByClass) { // last: the driver takes a URL's words first
      collect(first(source, "getJdbcUrl", "getURL", "getUrl"), found);
    }
    Object inner = inside(source);
    if (inner instanceof DataSource && depth > 0) {
      collect(Proxies.plain(inner), found, depth - 1);
    }
  }

  private static void collect(String url, Properties found) {
    Properties parsed = url == null || !url.startsWith("jdbc:postgresql:") ? null : Driver.parseURL(url, found);
    if (parsed != null) {
      parsed.stringPropertyNames().forEach(name -> found.setProperty(name, parsed.getProperty(name)));
    }
  }

  /** The driver's bean of these words, which knows what they name together; empty where they name no server, or wrongly. */
  private static Optional<PGSimpleDataSource> bean(Properties words) {
    PGSimpleDataSource bean = new PGSimpleDataSource();
    try {
      boolean isNamed = set(words, "url", value -> bean.setURL(String.valueOf(value)))
          | set(words, "URL", value -> bean.setURL(String.valueOf(value)))
          | set(words, "serverName", value -> bean.setServerNames(new String[] {String.valueOf(value)}))
          | set(words, "serverNames", value -> bean.setServerNames(listed(value)))
          | set(words, "portNumber", value -> bean.setPortNumbers(new int[] {Integer.parseInt(String.valueOf(value))}))
          | set(words, "portNumbers", value -> bean.setPortNumbers(ports(listed(value))));
      set(words, "databaseName", value -> bean.setDatabaseName(String.valueOf(value)));
      return isNamed ? Optional.of(bean) : Optional.empty();
    } catch (IllegalArgumentException error) { // the pool cannot make it, either
      return Optional.empty();
    }
  }

  private static boolean set(Properties words, String name, Consumer<Object> setter) {
    Object value = words.get(name);
    if (value != null) {
      setter.accept(value);
    }
    return value != null;
  }

  private static String[] listed(Object value) {
    return value instanceof String[] names ? names
        : value instanceof int[] ports ? Arrays.stream(ports).mapToObj(String::valueOf).toArray(String[]::new)
            : String.valueOf(value).split(",");
  }

  private static int[] ports(String[] listed) {
    return Arrays.stream(listed).mapToInt(each -> Integer.parseInt(each.trim())).toArray();
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
