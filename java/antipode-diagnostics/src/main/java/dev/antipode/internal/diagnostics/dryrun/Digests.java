package dev.antipode.internal.diagnostics.dryrun;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.temporal.Temporal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

/** Digests of what a read returned, to compare two reads without keeping a value (REC-14). */
public final class Digests {
  /** A longer result is not compared: the digest is made where the application reads. */
  static final int MOST_OCTETS = 1 << 20;

  private static final int DEEPEST = 32;

  private final MessageDigest hash;
  private int left = MOST_OCTETS;

  private Digests() {
    try {
      hash = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException error) { // every platform has it
      throw new IllegalStateException(error);
    }
  }

  /** The value is of a type that has no octets of its own here, too large, or too deep. */
  private static final class NotComparable extends Exception {
    private static final long serialVersionUID = 1L;

    NotComparable() {
      super(null, null, false, false);
    }
  }

  /** A digest of plain data, the same for equal data; null for what cannot be compared. */
  public static byte[] of(Object value) {
    try {
      return new Digests().of(value, 0);
    } catch (NotComparable unlike) {
      return null;
    }
  }

  private byte[] of(Object value, int depth) throws NotComparable {
    if (depth > DEEPEST) {
      throw new NotComparable();
    }
    if (value == null) {
      return leaf("none", new byte[0]);
    } else if (value instanceof String text) {
      if (text.length() > left) {
        throw new NotComparable();
      }
      return leaf("text", text.getBytes(StandardCharsets.UTF_16BE)); // lone surrogates, too
    } else if (value instanceof byte[] octets) {
      return leaf("octets", octets);
    } else if (isPlain(value)) {
      return leaf(value.getClass().getName(), value.toString().getBytes(StandardCharsets.UTF_8));
    } else if (value instanceof Map<?, ?> map) {
      List<byte[]> pairs = new ArrayList<>(map.size());
      for (Map.Entry<?, ?> each : map.entrySet()) {
        pairs.add(of(each, depth + 1));
      }
      return joined("map", inOrder(pairs));
    } else if (value instanceof Map.Entry<?, ?> pair) {
      return joined("pair", List.of(of(pair.getKey(), depth + 1), of(pair.getValue(), depth + 1)));
    } else if (value instanceof Set<?> set) {
      return joined("set", inOrder(all(set, depth)));
    } else if (value instanceof List<?> list) {
      return joined("list", all(list, depth));
    } else if (value instanceof Object[] array) {
      return joined("list", all(Arrays.asList(array), depth));
    }
    throw new NotComparable();
  }

  private static boolean isPlain(Object value) {
    return value instanceof Long
        || value instanceof Integer
        || value instanceof Short
        || value instanceof Byte
        || value instanceof Double
        || value instanceof Float
        || value instanceof Boolean
        || value instanceof Character
        || value instanceof BigInteger
        || value instanceof BigDecimal
        || value instanceof UUID
        || value instanceof Enum<?>
        || (value instanceof Temporal && value.getClass().getName().startsWith("java.time."));
  }

  private List<byte[]> all(Collection<?> values, int depth) throws NotComparable {
    List<byte[]> digests = new ArrayList<>(values.size());
    for (Object each : values) {
      digests.add(of(each, depth + 1));
    }
    return digests;
  }

  private static List<byte[]> inOrder(List<byte[]> digests) {
    return digests.stream().sorted(Arrays::compareUnsigned).toList();
  }

  private byte[] joined(String kind, List<byte[]> parts) throws NotComparable {
    ByteBuffer octets = ByteBuffer.allocate(parts.stream().mapToInt(part -> part.length).sum());
    parts.forEach(octets::put);
    return leaf(kind, octets.array());
  }

  private byte[] leaf(String kind, byte[] octets) throws NotComparable {
    left -= octets.length + 8;
    if (left < 0) {
      throw new NotComparable();
    }
    hash.update(kind.getBytes(StandardCharsets.UTF_8));
    hash.update((byte) 0);
    return hash.digest(octets);
  }
}
