package dev.antipode.postgresql;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Properties;
import javax.sql.DataSource;
import org.postgresql.Driver;

/** The user, password and TLS of a DataSource, as its kind of bean tells them: our own connections use the same. */
final class Credentials {
  private Credentials() {}

  /** What is known; empty where nothing is. */
  static Properties of(DataSource source) {
    Properties found = new Properties();
    collect(source, found, 3);
    return found;
  }

  private static void collect(Object source, Properties found, int depth) {
    String url = first(source, "getJdbcUrl", "getURL", "getUrl");
    if (url != null && url.startsWith("jdbc:postgresql:")) {
      Properties parsed = Driver.parseURL(url, new Properties());
      if (parsed != null) {
        parsed.stringPropertyNames().forEach(name -> found.setProperty(name, parsed.getProperty(name)));
      }
    }
    put(found, "user", first(source, "getUsername", "getUser"));
    put(found, "password", first(source, "getPassword"));
    if (asked(source, "getDataSourceProperties") instanceof Properties more) {
      more.stringPropertyNames().forEach(name -> found.setProperty(name, more.getProperty(name)));
    }
    Object inner = asked(source, "getDataSource");
    if (inner == null) {
      inner = asked(source, "getTargetDataSource");
    }
    if (inner instanceof DataSource && depth > 0) {
      collect(Proxies.plain(inner), found, depth - 1);
    }
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

  private static Object asked(Object source, String name) {
    try {
      Method method = source.getClass().getMethod(name);
      return method.invoke(source);
    } catch (NoSuchMethodException | IllegalAccessException | InvocationTargetException error) {
      return null; // it is another kind of bean
    }
  }
}
