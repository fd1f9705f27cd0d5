package dev.antipode.redis;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * RESP 2 and 3 for our own connections, where answers and pushes come on one socket.
 *
 * <p>Texts are octets, numbers Long, arrays and sets List, maps Map by text; errors are values.
 */
final class Resp {
  /** A message that answers nothing. */
  record Push(List<Object> words) {}

  private final InputStream in;

  Resp(InputStream in) {
    this.in = new BufferedInputStream(in, 1 << 16);
  }

  /** The next whole message; blocks until it is there. */
  Object read() throws IOException {
    String line = line();
    if (line.isEmpty()) {
      throw new IOException("the server does not speak RESP: an empty line");
    }
    String rest = line.substring(1);
    try {
      return switch (line.charAt(0)) {
        case '+', ',' -> rest.getBytes(StandardCharsets.ISO_8859_1);
        case '-' -> new ServerError(rest);
        case ':' -> Long.parseLong(rest);
        case '_' -> null;
        case '#' -> rest.equals("t");
        case '(' -> rest.getBytes(StandardCharsets.ISO_8859_1);
        case '$' -> octets(Integer.parseInt(rest));
        case '=' -> verbatim(octets(Integer.parseInt(rest)));
        case '!' -> new ServerError(Replication.text(octets(Integer.parseInt(rest))));
        case '*', '~' -> items(Integer.parseInt(rest));
        case '>' -> new Push(items(Integer.parseInt(rest)));
        case '%' -> map(Integer.parseInt(rest));
        case '|' -> afterAttributes(Integer.parseInt(rest));
        default -> throw new IOException("the server does not speak RESP: " + line);
      };
    } catch (NumberFormatException error) {
      throw new IOException("the server does not speak RESP: " + line, error);
    }
  }

  private String line() throws IOException {
    ByteArrayOutputStream line = new ByteArrayOutputStream(32);
    for (int octet = next(); octet != '\r'; octet = next()) {
      line.write(octet);
    }
    next(); // \n
    return line.toString(StandardCharsets.ISO_8859_1);
  }

  private int next() throws IOException {
    int octet = in.read();
    if (octet < 0) {
      throw new EOFException("the server closed the connection");
    }
    return octet;
  }

  private byte[] octets(int size) throws IOException {
    if (size < 0) {
      return null;
    }
    byte[] octets = in.readNBytes(size);
    if (octets.length < size) {
      throw new EOFException("the server closed the connection");
    }
    next();
    next();
    return octets;
  }

  private static byte[] verbatim(byte[] octets) {
    return octets == null ? null : java.util.Arrays.copyOfRange(octets, 4, octets.length); // `txt:`
  }

  private List<Object> items(int size) throws IOException {
    if (size < 0) {
      return null;
    }
    List<Object> items = new ArrayList<>(Math.min(size, 1024));
    for (int i = 0; i < size; i++) {
      items.add(read());
    }
    return items;
  }

  private Map<String, Object> map(int size) throws IOException {
    Map<String, Object> map = new LinkedHashMap<>();
    for (int i = 0; i < size; i++) {
      map.put(text(read()), read());
    }
    return map;
  }

  private Object afterAttributes(int size) throws IOException {
    for (int i = 0; i < 2 * size; i++) {
      read(); // nobody asked for them
    }
    return read();
  }

  /** A reply as text. */
  static String text(Object value) {
    return value instanceof byte[] octets ? new String(octets, StandardCharsets.UTF_8) : String.valueOf(value);
  }

  /** One command in the protocol's form. */
  static byte[] pack(Object... words) {
    ByteArrayOutputStream packed = new ByteArrayOutputStream(64);
    packed.writeBytes(("*" + words.length + "\r\n").getBytes(StandardCharsets.US_ASCII));
    for (Object word : words) {
      byte[] octets =
          word instanceof byte[] given ? given : String.valueOf(word).getBytes(StandardCharsets.UTF_8);
      packed.writeBytes(("$" + octets.length + "\r\n").getBytes(StandardCharsets.US_ASCII));
      packed.writeBytes(octets);
      packed.writeBytes(new byte[] {'\r', '\n'});
    }
    return packed.toByteArray();
  }
}
