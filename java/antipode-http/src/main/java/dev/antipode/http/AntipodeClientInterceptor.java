package dev.antipode.http;

import dev.antipode.propagation.Propagation;
import dev.antipode.propagation.Propagation.Outgoing;
import dev.antipode.trust.TrustSettings;
import io.opentelemetry.context.Scope;
import java.io.IOException;
import java.net.URI;
import org.springframework.http.HttpRequest;
import org.springframework.http.client.ClientHttpRequestExecution;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.http.client.ClientHttpResponse;

/**
 * For Spring's {@code RestTemplate} and {@code RestClient}: lineages go out to approved hosts and come back (PROP-8,
 * PROP-14).
 *
 * <pre>{@code
 * restTemplate.getInterceptors().add(new AntipodeClientInterceptor());
 * RestClient.builder().requestInterceptor(new AntipodeClientInterceptor()).build();
 * }</pre>
 *
 * <p>A request factory that follows redirects by itself does so behind this, with the headers as they are: have them followed by
 * {@link JudgedRedirects}, or switch them off, where a host that is called may redirect to one that is not yours (TRUST-26).
 */
public final class AntipodeClientInterceptor implements ClientHttpRequestInterceptor {
  /**
   * An interceptor.
   *
   * @throws dev.antipode.ConfigurationException where the settings of trust are wrong
   */
  public AntipodeClientInterceptor() {
    TrustSettings.inForce();
  }

  /** Judges where the request goes, and takes what its response brings. */
  @Override
  public ClientHttpResponse intercept(HttpRequest request, byte[] body, ClientHttpRequestExecution execution)
      throws IOException {
    String host = hostOf(request.getURI());
    Outgoing outgoing = SpringHeaders.judge(request.getHeaders(), host);
    try (JudgedCall call = new JudgedCall(host)) {
      try (Scope approved = Propagation.approved(outgoing.text())) {
        ClientHttpResponse response = execution.execute(request, body);
        SpringHeaders.merge(response, call.host());
        return response;
      } catch (IOException e) {
        if (!Failures.neverLeft(e)) {
          Propagation.unanswered(call.host(), e.getClass().getSimpleName());
        }
        throw e;
      }
    }
  }

  /** The host that a URI names; empty for none. */
  static String hostOf(URI uri) {
    return uri.getHost() == null ? "" : uri.getHost();
  }
}
