package dev.antipode.internal.base;

import java.math.BigDecimal;
import java.util.Collection;
import java.util.Map;

/** Writes the few shapes that a record has: objects, lists, texts, numbers, booleans and null. */
public final class Json {
  private Json() {}

  /** One line, without the line's end. */
  public static String line(Map<String, Object> record) {
    StringBuilder out = new StringBuilder(256);
    write(record, out);
    return out.toString();
  }

  private static void write(Object value, StringBuilder out) {
    if (value instanceof Map<?, ?> object) {
      String separator = "{";
      for (Map.Entry<?, ?> entry : object.entrySet()) {
        out.append(separator);
        text(entry.getKey().toString(), out);
        out.append(':');
        write(entry.getValue(), out);
        separator = ",";
      }
      out.append(object.isEmpty() ? "{}" : "}");
    } else if (value instanceof Collection<?> list) {
      String separator = "[";
      for (Object each : list) {
        out.append(separator);
        write(each, out);
        separator = ",";
      }
      out.append(list.isEmpty() ? "[]" : "]");
    } else if (value instanceof Double number) {
      out.append(BigDecimal.valueOf(number).toPlainString()); // no exponent: not every reader takes one
    } else if (value == null || value instanceof Number || value instanceof Boolean) {
      out.append(value);
    } else {
      text(value.toString(), out);
    }
  }

  private static void text(String value, StringBuilder out) {
    out.append('"');
    for (int place = 0; place < value.length(); place++) {
      char c = value.charAt(place);
      int letter = "\b\f\n\r\t".indexOf(c);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (letter >= 0) {
        out.append('\\').append("bfnrt".charAt(letter));
      } else if (c < 0x20 || c > 0x7e) { // in ASCII, as the other languages write it; a lone surrogate is no UTF-8
        out.append("\\u%04x".formatted((int) c));
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }
}
