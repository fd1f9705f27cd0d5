package dev.antipode.http;

import dev.antipode.propagation.Carriers;
import dev.antipode.propagation.Header;
import dev.antipode.propagation.HeaderCarrier;
import dev.antipode.propagation.Propagation;
import dev.antipode.propagation.Propagation.Outgoing;
import dev.antipode.trust.TrustSettings;
import io.opentelemetry.context.Scope;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.springframework.http.HttpHeaders;
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
 * <p>A request factory that follows redirects by itself does so behind this, with the headers as they are: switch that off
 * where a host that is called may redirect to one that is not yours (TRUST-26).
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
    String given = request.getURI().getHost();
    String host = given == null ? "" : given;
    Outgoing outgoing = Propagation.prepareRequest(new Lines(request.getHeaders()), host);
    outgoing.changes().forEach((name, value) -> {
      if (value == null) {
        request.getHeaders().remove(name);
      } else {
        request.getHeaders().set(name, value);
      }
    });
    try (Scope call = Propagation.approved(outgoing.text())) {
      ClientHttpResponse response = execution.execute(request, body);
      List<String> values = response.getHeaders().get(Carriers.LINEAGE_HEADER);
      if (values != null && !values.isEmpty()) {
        Propagation.mergeResponse(values, host);
      }
      return response;
    } catch (IOException e) {
      if (!Failures.neverLeft(e)) {
        Propagation.unanswered(host, e.getClass().getSimpleName());
      }
      throw e;
    }
  }

  private record Lines(HttpHeaders headers) implements HeaderCarrier {
    @Override
    public Iterable<Header> lines() {
      List<Header> lines = new ArrayList<>();
      headers.forEach((name, values) -> values.forEach(value -> lines.add(new Header(name, value))));
      return lines;
    }

    @Override
    public void set(String name, String value) {
      headers.set(name, value);
    }

    @Override
    public void remove(String name) {
      headers.remove(name);
    }
  }
}
