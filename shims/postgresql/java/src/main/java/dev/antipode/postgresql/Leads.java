package dev.antipode.postgresql;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Properties;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.postgresql.PGProperty;
import org.postgresql.ds.common.BaseDataSource;

/** Where the connections of a wrapped DataSource lead, as its settings say now: the application may change them (BAR-52). */
final class Leads {
  private static final int DEEPEST = 3;
  private static final List<String> INSIDE = List.of("getDataSource", "getTargetDataSource");
  private static final List<String> DRIVERS = List.of(
      "getServerNames", "getPortNumbers", "getDatabaseName", "getTargetServerType", "getSocketFactory", "getSocketFactoryArg");
  private static final List<String> POOLS = List.of(
      "getJdbcUrl", "getURL", "getUrl", "getDriverClassName", "getDataSourceClassName", "getDataSourceProperties");

  /** What tells it, by class: what is inside comes last. */
  private static final ClassValue<List<Method>> GETTERS = new ClassValue<>() {
    @Override
    protected List<Method> computeValue(Class<?> type) {
      boolean isDrivers = BaseDataSource.class.isAssignableFrom(type); // its URL would be made anew each time
      return Stream.concat((isDrivers ? DRIVERS : POOLS).stream(), INSIDE.stream())
          .map(name -> getter(type, name))
          .filter(Objects::nonNull)
          .toList();
    }
  };

  private final DataSource plain;
  private volatile LeadSettings said; // a race makes it twice, which harms nothing

  /** The settings at a look. */
  private record LeadSettings(List<Object> looked, Properties words) {}

  Leads(DataSource plain) {
    this.plain = plain;
  }

  /** Return what decides where it leads: equal as long as that is the same. */
  List<Object> look() {
    List<Object> found = new ArrayList<>();
    look(plain, DEEPEST, found);
    return found;
  }

  /** Return what its settings say now, as words of the driver's. */
  Properties words() {
    List<Object> now = look();
    LeadSettings known = said;
    if (known == null || !known.looked.equals(now)) {
      known = new LeadSettings(now, Credentials.of(plain));
      said = known;
    }
    return known.words;
  }

  /** Return whether its settings name the one server to which its next connection leads. */
  boolean namesServer() {
    Properties now = words();
    String host = now.getProperty(PGProperty.PG_HOST.getName());
    return host != null
        && !host.contains(",")
        && Credentials.OF_SOCKETS.stream().allMatch(each -> now.getProperty(each.getName()) == null);
  }

  /** Return a DataSource and what is inside it. */
  static List<Object> chain(Object source) {
    List<Object> found = new ArrayList<>(List.of(source));
    for (int depth = 0; depth < DEEPEST; depth++) {
      Object outer = found.get(found.size() - 1);
      GETTERS.get(outer.getClass()).stream()
          .filter(getter -> INSIDE.contains(getter.getName()))
          .map(getter -> Proxies.plain(asked(outer, getter)))
          .filter(DataSource.class::isInstance)
          .findFirst()
          .ifPresent(found::add);
    }
    return found;
  }

  private static void look(Object source, int depth, List<Object> found) {
    for (Method getter : GETTERS.get(source.getClass())) {
      Object value = asked(source, getter);
      if (!INSIDE.contains(getter.getName())) {
        found.add(
            value instanceof String[] names ? Arrays.asList(names)
                : value instanceof int[] ports ? Arrays.stream(ports).boxed().toList()
                    : value instanceof Properties words ? words.clone() : value);
      } else if (value instanceof DataSource inner && depth > 0) {
        look(Proxies.plain(inner), depth - 1, found);
      }
    }
  }

  private static Method getter(Class<?> type, String name) {
    try {
      Method found = type.getMethod(name);
      return found.trySetAccessible() ? found : null;
    } catch (NoSuchMethodException error) {
      return null; // it is another kind of bean
    }
  }

  private static Object asked(Object source, Method getter) {
    try {
      return getter.invoke(source);
    } catch (IllegalAccessException | InvocationTargetException error) {
      return null;
    }
  }
}
