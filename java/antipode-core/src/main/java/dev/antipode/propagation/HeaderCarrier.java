package dev.antipode.propagation;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The headers of a request, response or message, whatever holds them. Names are compared without regard to case.
 *
 * <p>{@link #of(Map)} and {@link #ofLists(Map)} serve maps; a transport of its own kind implements the three methods.
 */
public interface HeaderCarrier {
  /** Every line, in order. */
  Iterable<Header> lines();

  /** Puts one line in the place of all that have this name. */
  void set(String name, String value);

  /** Takes all lines of this name out. */
  void remove(String name);

  /** The value of a header, several lines joined by commas; null where there is none. */
  default String get(String name) {
    String joined = null;
    for (Header header : lines()) {
      if (header.name().equalsIgnoreCase(name)) {
        joined = joined == null ? header.value() : joined + "," + header.value();
      }
    }
    return joined;
  }

  /** The headers of a map from name to value; for writing it must be mutable. */
  static HeaderCarrier of(Map<String, String> headers) {
    return new HeaderCarrier() {
      @Override
      public Iterable<Header> lines() {
        List<Header> lines = new ArrayList<>();
        headers.forEach((name, value) -> {
          if (name != null && value != null) {
            lines.add(new Header(name, value));
          }
        });
        return lines;
      }

      @Override
      public void set(String name, String value) {
        headers.put(spelled(headers, name), value);
      }

      @Override
      public void remove(String name) {
        headers.keySet().removeIf(present -> name.equalsIgnoreCase(present));
      }
    };
  }

  /** The headers of a map from name to lines; for writing it must be mutable. */
  static HeaderCarrier ofLists(Map<String, List<String>> headers) {
    return new HeaderCarrier() {
      @Override
      public Iterable<Header> lines() {
        List<Header> lines = new ArrayList<>();
        headers.forEach((name, values) -> {
          if (name != null && values != null) { // HttpURLConnection has the status line under null
            values.forEach(value -> lines.add(new Header(name, value)));
          }
        });
        return lines;
      }

      @Override
      public void set(String name, String value) {
        headers.put(spelled(headers, name), new ArrayList<>(List.of(value)));
      }

      @Override
      public void remove(String name) {
        headers.keySet().removeIf(present -> name.equalsIgnoreCase(present));
      }
    };
  }

  private static String spelled(Map<String, ?> headers, String name) {
    return headers.keySet().stream().filter(name::equalsIgnoreCase).findFirst().orElse(name);
  }
}
