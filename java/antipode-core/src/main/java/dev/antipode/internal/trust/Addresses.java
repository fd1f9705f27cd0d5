package dev.antipode.internal.trust;

import dev.antipode.propagation.Header;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;

/** Which addresses are private, and which ones a forwarding header names (TRUST-6 to TRUST-14). */
public final class Addresses {
  private static final List<String> UNIX_PEER = List.of("unix:", "unix-abstract:", "/", "@");
  private static final int LONGEST = 256;
  private static final int MOST_HOPS = 64;
  private static final int MOST_OCTETS = 4096;
  private static final String TOO_LONG = "more than 64 hops or 4096 octets";
  private static final String UNPARSABLE = "an address that cannot be read";
  private static final String TOKEN = "!#$%&'*+.^_`|~-";

  private Addresses() {}

  /**
   * An address that a forwarding header names.
   *
   * @param header the header, as people spell it
   * @param address the address as it stands there
   */
  public record Hop(String header, String address) {}

  /**
   * Return whether a socket's peer is private: a Unix socket is, and what cannot be parsed is not (TRUST-8, TRUST-9).
   *
   * @param byUnix whether a request without a peer (null, empty) came by a Unix socket
   */
  public static boolean isPrivatePeer(String peer, boolean byUnix) {
    return peer == null || peer.isEmpty() ? byUnix : UNIX_PEER.stream().anyMatch(peer::startsWith) || isPrivate(peer);
  }

  /** Whether an address, as it stands in a peer's name or a forwarding header, is private. */
  public static boolean isPrivate(String text) {
    if (text.length() > LONGEST) {
      return false;
    }
    Address address = Address.parse(text);
    return address != null && address.isPrivate();
  }

  /** Stricter than for a peer: a path in a header names no socket. */
  private static boolean isPrivateHop(String text) {
    return text.equals("unix:") || isPrivate(text);
  }

  /** Return whether two texts name one address; what cannot be read is the same only where the texts are. */
  static boolean areSame(String one, String other) {
    if (Objects.equals(one, other)) {
      return true;
    }
    boolean isAddress = one != null && other != null && Math.max(one.length(), other.length()) <= LONGEST;
    Address address = isAddress ? Address.parse(one) : null;
    return address != null && address.equals(Address.parse(other));
  }

  /**
   * Return what forwarding headers name, in their order (TRUST-10 to TRUST-12). Past 64 hops or 4,096 octets in all of them
   * together it is one hop that nobody can read (TRUST-32).
   */
  public static List<Hop> hops(Iterable<Header> headers) {
    List<Hop> hops = new ArrayList<>();
    int octets = 0;
    int elements = 0;
    for (Header header : headers) {
      boolean list = header.name().equalsIgnoreCase("x-forwarded-for");
      if (list || header.name().equalsIgnoreCase("forwarded")) {
        String name = list ? "X-Forwarded-For" : "Forwarded";
        octets += header.value().length();
        List<String> items = octets > MOST_OCTETS ? List.of() : listItems(header.value());
        elements += items.size();
        if (octets > MOST_OCTETS || elements > MOST_HOPS) {
          return List.of(new Hop(name, TOO_LONG));
        }
        for (String hop : list ? items : forwardedHops(header.value())) {
          hops.add(new Hop(name, hop));
        }
      }
    }
    return hops;
  }

  static boolean areTooMany(List<Hop> hops) {
    return hops.size() == 1 && hops.get(0).address().equals(TOO_LONG);
  }

  /** The first of these that is not private, or null. */
  public static Hop firstPublic(List<Hop> hops) {
    return hops.stream().filter(hop -> !isPrivateHop(hop.address())).findFirst().orElse(null);
  }

  private static List<String> listItems(String value) {
    List<String> items = new ArrayList<>();
    for (String item : value.split(",", -1)) {
      String text = Address.stripped(item);
      if (!text.isEmpty()) {
        items.add(text);
      }
    }
    return items;
  }

  /** The {@code for} and {@code by} parameters of a Forwarded line; a break of its grammar cannot be read (RFC 7239). */
  private static List<String> forwardedHops(String value) {
    List<String> hops = new ArrayList<>();
    int place = 0;
    while (place < value.length()) {
      if (",; \t".indexOf(value.charAt(place)) >= 0) {
        place++;
        continue;
      }
      int equals = tokenEnd(value, place);
      int end = equals > place && equals < value.length() && value.charAt(equals) == '='
          ? valueEnd(value, equals + 1)
          : -1;
      int next = end < 0 ? -1 : spacesEnd(value, end);
      if (next < 0 || next < value.length() && ",;".indexOf(value.charAt(next)) < 0) {
        hops.add(UNPARSABLE);
        return hops;
      }
      String name = value.substring(place, equals).toLowerCase(Locale.ROOT);
      if (name.equals("for") || name.equals("by")) {
        String hop = value.substring(equals + 1, end).replaceAll("\\\\(.)", "$1");
        hops.add(hop.isEmpty() ? UNPARSABLE : hop);
      }
      place = next;
    }
    return hops;
  }

  private static int tokenEnd(String value, int from) {
    int place = spacesEnd(value, from);
    while (place < value.length() && isToken(value.charAt(place))) {
      place++;
    }
    return place;
  }

  private static boolean isToken(char c) {
    return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || TOKEN.indexOf(c) >= 0;
  }

  /** Where a parameter's value ends, quotes included; -1 where a quote is not closed. */
  private static int valueEnd(String value, int from) {
    int place = from;
    if (place < value.length() && value.charAt(place) == '"') {
      for (place++; place < value.length(); place++) {
        if (value.charAt(place) == '"') {
          return place + 1;
        }
        if (value.charAt(place) == '\\') {
          place++;
        }
      }
      return -1;
    }
    while (place < value.length() && "\",;".indexOf(value.charAt(place)) < 0 && !isSpace(value.charAt(place))) {
      place++;
    }
    return place;
  }

  private static int spacesEnd(String value, int from) {
    int place = from;
    while (place < value.length() && isSpace(value.charAt(place))) {
      place++;
    }
    return place;
  }

  private static boolean isSpace(char c) {
    return c == ' ' || c >= '\t' && c <= '\r';
  }
}
