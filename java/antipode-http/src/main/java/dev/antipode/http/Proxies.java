package dev.antipode.http;

import dev.antipode.shim.TrustRules;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.URI;
import java.util.List;

/** HTTP proxies, which read a request in plain text and may answer it themselves (TRUST-35). */
final class Proxies {
  private Proxies() {}

  /** Return the host that a URI names; empty for none. */
  static String hostOf(URI uri) {
    return uri.getHost() == null ? "" : uri.getHost();
  }

  /** The host by which a request is judged: the target's, or that of a proxy on the way that is not approved. */
  static String judgedHost(URI uri, ProxySelector selector) {
    String host = hostOf(uri);
    if (selector == null || !"http".equalsIgnoreCase(uri.getScheme())) {
      return host;
    }
    try {
      List<Proxy> proxies = selector.select(uri);
      for (Proxy proxy : proxies == null ? List.<Proxy>of() : proxies) {
        if (proxy.type() == Proxy.Type.HTTP && proxy.address() instanceof InetSocketAddress address
            && !TrustRules.isApproved(address.getHostString())) {
          return address.getHostString();
        }
      }
    } catch (IllegalArgumentException noProxyForThat) {
      return host; // the client will say so
    }
    return host;
  }
}
