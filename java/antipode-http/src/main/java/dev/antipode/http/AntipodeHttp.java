package dev.antipode.http;

import dev.antipode.ConfigurationException;
import dev.antipode.shim.TrustRules;
import java.net.http.HttpClient;

/** The JDK's HTTP client, with lineages going out and coming back. */
public final class AntipodeHttp {
  private AntipodeHttp() {}

  /**
   * A client that carries the current scope's lineage to approved hosts, and joins what their responses bring back (PROP-8,
   * PROP-14). It shares the connections of the one given, which stays plain.
   *
   * <p>The scope is that of the caller of {@code send} or {@code sendAsync}; stages of a future run in it by
   * {@code Antipode.carry}.
   *
   * @throws ConfigurationException for a client that follows redirects by itself, where a lineage would go along to hosts
   *     that nobody has judged (TRUST-26)
   */
  public static HttpClient wrap(HttpClient client) {
    TrustRules.check();
    if (client instanceof CarryingHttpClient) {
      return client;
    }
    if (client.followRedirects() != HttpClient.Redirect.NEVER) {
      throw new ConfigurationException(
          "AP501",
          "AntipodeHttp.wrap(client): this client follows redirects by itself, and a lineage would go along to hosts that "
              + "nobody has judged. Build it with followRedirects(HttpClient.Redirect.NEVER).");
    }
    return new CarryingHttpClient(client);
  }
}
