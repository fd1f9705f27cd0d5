package dev.antipode.internal.trust;

import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Which hosts are inside, by their names or literal addresses alone (TRUST-15, TRUST-17). */
final class Hosts {
  private static final List<String> CLUSTER_SUFFIXES =
      List.of(".local", ".internal", ".svc", ".cluster.local", ".lan", ".test");
  private static final Pattern NUMBER_LABEL = Pattern.compile("[0-9]+|0x[0-9a-f]*");
  private static final Pattern HOST_PORT = Pattern.compile("([^:\\[\\]]+):([0-9]{0,5})");
  private static final int LONGEST = 512;

  private Hosts() {}

  /** With A to Z in lower case, and no other letter: some, such as U+212A, would become another host (TRUST-17). */
  static String lower(String name) {
    StringBuilder lower = new StringBuilder(name);
    for (int place = 0; place < name.length(); place++) {
      char letter = name.charAt(place);
      if (letter >= 'A' && letter <= 'Z') {
        lower.setCharAt(place, (char) (letter + ('a' - 'A')));
      }
    }
    return lower.toString();
  }

  /** A host in lower case without port and trailing dot, and whether it had that dot. */
  private record BareHost(String name, boolean dotted) {
    static BareHost of(String host) {
      String name = lower(Address.stripped(host));
      Matcher match = HOST_PORT.matcher(name);
      if (match.matches() && (match.group(2).isEmpty() || Integer.parseInt(match.group(2)) <= 65535)) {
        name = match.group(1);
      }
      return name.endsWith(".") ? new BareHost(name.substring(0, name.length() - 1), true) : new BareHost(name, false);
    }
  }

  /** Whether a lineage may go out to this host or host:port, and its response be believed. */
  static boolean areInside(String host, Peers peers) {
    if (host.length() > LONGEST) {
      return false;
    }
    BareHost bare = BareHost.of(host);
    return isInside(bare) || peers.lists(bare.name());
  }

  private static boolean isInside(BareHost host) {
    String name = host.name();
    Address address = Address.parse(name);
    if (address != null) {
      return address.isPrivate();
    }
    if (name.equals("localhost")) {
      return true;
    }
    // Ideographic full stops and the like would be dots to a resolver; numbers would be addresses.
    if (!Peers.LABELS.matcher(name).matches()
        || NUMBER_LABEL.matcher(name.substring(name.lastIndexOf('.') + 1)).matches()) {
      return false;
    }
    return CLUSTER_SUFFIXES.stream().anyMatch(name::endsWith) || name.indexOf('.') < 0 && !host.dotted();
  }
}
