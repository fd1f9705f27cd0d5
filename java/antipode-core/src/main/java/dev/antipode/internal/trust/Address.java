package dev.antipode.internal.trust;

import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * An IP address, read from text without any look-up (TRUST-7, TRUST-8). An IPv4-mapped one is the IPv4 address.
 *
 * <p>No library reads it: {@code java.net} takes shorthand and other bases, and asks name servers.
 */
final class Address {
  /** A range of addresses by how many leading bits they share. */
  record Network(Address base, int prefix) {
    boolean contains(Address address) {
      return base.octets.length == address.octets.length && address.sharesBits(base, prefix);
    }
  }

  /** What private means: exactly this list, and no library's (TRUST-6). */
  private static final List<Network> PRIVATE = List.of(
      network("127.0.0.0", 8),
      network("10.0.0.0", 8),
      network("172.16.0.0", 12),
      network("192.168.0.0", 16),
      network("169.254.0.0", 16),
      network("100.64.0.0", 10),
      network("::1", 128),
      network("fc00::", 7),
      network("fe80::", 10));

  private static final Pattern BRACKETED = Pattern.compile("\\[([^\\[\\]]*)\\](?::([0-9]{1,5}))?");
  private static final Pattern WITH_PORT = Pattern.compile("([0-9.]+):([0-9]{1,5})");
  private static final int GREATEST_PORT = 65535;
  private static final int GROUPS = 8;

  private final byte[] octets; // 4 or 16

  private Address(byte[] octets) {
    this.octets = octets;
  }

  private static Network network(String base, int prefix) {
    return new Network(ofLiteral(base), prefix);
  }

  /** The address in a text, or null; white space, quotes, brackets, port, zone and gRPC's prefixes are taken off. */
  static Address parse(String given) {
    String text = stripped(given);
    if (text.length() > 1 && text.startsWith("\"") && text.endsWith("\"")) {
      text = stripped(text.substring(1, text.length() - 1));
    }
    if (text.startsWith("ipv4:") || text.startsWith("ipv6:")) {
      text = text.substring(5).replace("%5B", "[").replace("%5D", "]").replace("%25", "%");
    }
    boolean bracketed = text.startsWith("[");
    Matcher match = (bracketed ? BRACKETED : WITH_PORT).matcher(text);
    if (match.matches()) {
      boolean goodPort = match.group(2) == null || Integer.parseInt(match.group(2)) <= GREATEST_PORT;
      if (!goodPort || bracketed && match.group(1).indexOf(':') < 0) {
        return null;
      }
      text = match.group(1);
    }
    int zone = text.indexOf(':') < 0 ? -1 : text.indexOf('%');
    if (zone >= 0) {
      if (zone == text.length() - 1) {
        return null;
      }
      text = text.substring(0, zone);
    }
    return ofLiteral(text);
  }

  static String stripped(String text) {
    int from = 0;
    int to = text.length();
    while (from < to && isBlank(text.charAt(from))) {
      from++;
    }
    while (from < to && isBlank(text.charAt(to - 1))) {
      to--;
    }
    return text.substring(from, to);
  }

  private static boolean isBlank(char c) {
    return c == ' ' || c == '\t';
  }

  private static Address ofLiteral(String text) {
    byte[] octets = text.indexOf(':') < 0 ? ofFour(text) : ofSixteen(text);
    if (octets == null) {
      return null;
    }
    boolean mapped = octets.length == 16 && octets[10] == -1 && octets[11] == -1 && isZero(octets, 10);
    return new Address(mapped ? Arrays.copyOfRange(octets, 12, 16) : octets);
  }

  private static boolean isZero(byte[] octets, int length) {
    for (int place = 0; place < length; place++) {
      if (octets[place] != 0) {
        return false;
      }
    }
    return true;
  }

  /** Four decimal parts without leading zeros, which are read differently elsewhere. */
  private static byte[] ofFour(String text) {
    String[] parts = text.split("\\.", -1);
    if (parts.length != 4) {
      return null;
    }
    byte[] octets = new byte[4];
    for (int place = 0; place < 4; place++) {
      String part = parts[place];
      int value = part.length() > 3 || part.length() > 1 && part.startsWith("0") ? -1 : number(part, 10);
      if (value < 0 || value > 255) {
        return null;
      }
      octets[place] = (byte) value;
    }
    return octets;
  }

  /** Eight groups of hexadecimal digits, with one {@code ::} for those that are zero, and maybe an IPv4 tail. */
  private static byte[] ofSixteen(String text) {
    String groups = text;
    byte[] tail = null;
    int lastColon = text.lastIndexOf(':');
    if (text.indexOf('.', lastColon) >= 0) {
      tail = ofFour(text.substring(lastColon + 1));
      if (tail == null) {
        return null;
      }
      groups = text.substring(0, lastColon + 1) + "0:0"; // its place is kept by two groups
    }
    int gap = groups.indexOf("::");
    if (gap >= 0 && groups.indexOf("::", gap + 1) >= 0) {
      return null;
    }
    String[] before = split(gap < 0 ? groups : groups.substring(0, gap));
    String[] after = split(gap < 0 ? "" : groups.substring(gap + 2));
    int given = before.length + after.length;
    if (gap < 0 ? given != GROUPS : given >= GROUPS) {
      return null;
    }
    byte[] octets = new byte[2 * GROUPS];
    if (!put(before, octets, 0) || !put(after, octets, 2 * (GROUPS - after.length))) {
      return null;
    }
    if (tail != null) {
      System.arraycopy(tail, 0, octets, 12, 4);
    }
    return octets;
  }

  private static String[] split(String groups) {
    return groups.isEmpty() ? new String[0] : groups.split(":", -1);
  }

  private static boolean put(String[] groups, byte[] octets, int from) {
    int place = from;
    for (String group : groups) {
      int value = group.length() > 4 ? -1 : number(group, 16);
      if (value < 0) {
        return false;
      }
      octets[place++] = (byte) (value >> 8);
      octets[place++] = (byte) value;
    }
    return true;
  }

  /** A number of ASCII digits, or -1. */
  private static int number(String digits, int base) {
    int value = 0;
    for (int place = 0; place < digits.length(); place++) {
      char c = digits.charAt(place);
      int digit = c < 0x80 ? Character.digit(c, base) : -1;
      if (digit < 0) {
        return -1;
      }
      value = value * base + digit;
    }
    return digits.isEmpty() ? -1 : value;
  }

  /** A range in the form {@code 10.0.0.0/8}, or null: the bits behind the prefix must be zero. */
  static Network parseNetwork(String text) {
    int slash = text.indexOf('/');
    Address base = ofLiteral(slash < 0 ? text : text.substring(0, slash));
    if (base == null) {
      return null;
    }
    int bits = 8 * base.octets.length;
    int prefix = slash < 0 ? bits : number(text.substring(slash + 1), 10);
    boolean right = prefix >= 0 && prefix <= bits && base.isZeroBehind(prefix);
    return right ? new Network(base, prefix) : null;
  }

  private boolean isZeroBehind(int prefix) {
    for (int bit = prefix; bit < 8 * octets.length; bit++) {
      if ((octets[bit / 8] >> 7 - bit % 8 & 1) != 0) {
        return false;
      }
    }
    return true;
  }

  private boolean sharesBits(Address other, int prefix) {
    for (int bit = 0; bit < prefix; bit++) {
      if (((octets[bit / 8] ^ other.octets[bit / 8]) >> 7 - bit % 8 & 1) != 0) {
        return false;
      }
    }
    return true;
  }

  int bits() {
    return 8 * octets.length;
  }

  /** Whether it is on the list of private ones. */
  boolean isPrivate() {
    return PRIVATE.stream().anyMatch(network -> network.contains(this));
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Address address && Arrays.equals(octets, address.octets);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(octets);
  }
}
