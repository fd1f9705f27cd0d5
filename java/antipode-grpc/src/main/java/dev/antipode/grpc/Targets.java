package dev.antipode.grpc;

import dev.antipode.shim.TrustRules;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;

/** The host that a channel's target names, as trust judges it. */
final class Targets {
  private static final String LOOPBACK = "127.0.0.1";
  private static final Pattern SCHEME = Pattern.compile("[A-Za-z][A-Za-z0-9+.-]*");

  private Targets() {}

  /**
   * The host, with its port; of several addresses one that is not inside. A Unix socket counts as loopback. Where a resolver that
   * we do not know leads, its target does not say: that stands for itself (TRUST-35).
   */
  static String host(String target) {
    int colon = target.indexOf(':');
    if (colon < 0) {
      return target;
    }
    String scheme = target.substring(0, colon);
    String rest = target.substring(colon + 1);
    if (scheme.equals("unix") || scheme.equals("unix-abstract")) {
      return LOOPBACK;
    }
    if (scheme.equals("ipv4") || scheme.equals("ipv6")) {
      List<String> addresses = Arrays.stream(rest.split(",", -1)).map(item -> item.replaceFirst("^/+", "")).toList();
      return addresses.stream()
          .filter(address -> !TrustRules.isApproved(address))
          .findFirst()
          .orElse(addresses.get(0));
    }
    if (scheme.equals("dns")) {
      return rest.substring(rest.lastIndexOf('/') + 1);
    }
    return SCHEME.matcher(scheme).matches() && rest.contains("/") ? withAuthority(scheme, rest) : target;
  }

  /** In the form that {@code ANTIPODE_PEERS} lists: {@code xds:///posts}. */
  private static String withAuthority(String scheme, String rest) {
    return scheme + (rest.startsWith("//") ? ":" : "://") + rest;
  }
}
