package dev.antipode.postgresql;

import java.lang.reflect.Array;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Calendar;
import java.util.Collection;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import org.postgresql.util.PGobject;

/**
 * What the application has set on a prepared statement: the calls, so that they can be made once more (REC-23). It keeps what
 * the driver keeps anyway, and copies nothing before {@link #copy}.
 */
final class Parameters {
  /** Of more octets, about, nothing is copied. */
  static final int MOST_OCTETS = 16 * 1024;

  private static final Set<Class<?>> UNCHANGING = Set.of(
      String.class, Boolean.class, Byte.class, Short.class, Integer.class, Long.class, Float.class, Double.class,
      Character.class, BigDecimal.class, BigInteger.class, UUID.class);
  private static final int OCTETS_OF_ONE = 16;

  private final Map<Integer, Setting> settings = new TreeMap<>();

  /** One call that sets a parameter. */
  record Setting(Method method, Object[] arguments) {}

  /** A call of the application's that may set one, once it is done. */
  static boolean isSetting(Method method, Object[] arguments) {
    return arguments != null
        && arguments.length > 1
        && arguments[0] instanceof Integer
        && method.getName().startsWith("set");
  }

  /** One was set. */
  void set(Method method, Object[] arguments) {
    settings.put((Integer) arguments[0], new Setting(method, arguments));
  }

  /**
   * What is set now, as it stays whatever the application does with its objects; null where one of them cannot be known: a
   * stream, an SQL array, an object of a class of its own. Never asks a server.
   */
  List<Setting> copy() {
    List<Setting> copied = new ArrayList<>(settings.size());
    int left = MOST_OCTETS;
    for (Setting each : settings.values()) {
      Object[] arguments = each.arguments.clone();
      for (int at = 1; at < arguments.length; at++) {
        left -= octets(arguments[at]);
        Object own = left < 0 ? null : copy(arguments[at]);
        if (own == null && arguments[at] != null) {
          return null;
        }
        arguments[at] = own;
      }
      copied.add(new Setting(each.method, arguments));
    }
    return copied;
  }

  /** About how much it holds. */
  private static int octets(Object value) {
    if (value instanceof String text) {
      return text.length();
    } else if (value instanceof byte[] octets) {
      return octets.length;
    } else if (value instanceof PGobject object) {
      return object.getValue() == null ? OCTETS_OF_ONE : object.getValue().length();
    } else if (value == null || !value.getClass().isArray()) {
      return OCTETS_OF_ONE;
    }
    int sum = 0;
    for (int at = 0; at < Array.getLength(value) && sum <= MOST_OCTETS; at++) {
      Object element = Array.get(value, at);
      sum += element instanceof String text ? text.length() + OCTETS_OF_ONE : OCTETS_OF_ONE;
    }
    return sum;
  }

  /** Null where it cannot be copied, and where it is null. */
  private static Object copy(Object value) {
    if (value == null || isUnchanging(value)) {
      return value;
    } else if (value.getClass().isArray()) {
      return copyOfArray(value);
    } else if (value instanceof Calendar time) {
      return time.clone();
    } else if (value instanceof Date time) {
      return time.clone();
    } else if (value instanceof PGobject object) {
      try {
        return object.clone();
      } catch (CloneNotSupportedException error) {
        return null;
      }
    }
    return null;
  }

  private static boolean isUnchanging(Object value) {
    return UNCHANGING.contains(value.getClass()) || value instanceof Enum || value.getClass().getName().startsWith("java.time.");
  }

  private static Object copyOfArray(Object array) {
    int length = Array.getLength(array);
    Object copy = Array.newInstance(array.getClass().getComponentType(), length);
    for (int at = 0; at < length; at++) {
      Object element = Array.get(array, at);
      if (element != null && !isUnchanging(element)) {
        return null;
      }
      Array.set(copy, at, element);
    }
    return copy;
  }

  /** Sets them on a statement of our own. */
  static void apply(Collection<Setting> settings, PreparedStatement statement) throws SQLException {
    for (Setting each : settings) {
      try {
        each.method.invoke(statement, each.arguments);
      } catch (InvocationTargetException | IllegalAccessException | IllegalArgumentException error) {
        throw new SQLException(error);
      }
    }
  }
}
