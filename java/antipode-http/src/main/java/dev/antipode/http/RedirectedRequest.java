package dev.antipode.http;

import dev.antipode.propagation.Propagation;
import dev.antipode.propagation.Propagation.Outgoing;
import io.opentelemetry.context.Scope;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.ProxySelector;
import java.net.URI;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.http.StreamingHttpOutputMessage;
import org.springframework.http.client.AbstractClientHttpRequest;
import org.springframework.http.client.ClientHttpRequest;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.ClientHttpResponse;

/** A request, and those that redirects make of it; each is judged where an interceptor asks for it (TRUST-26). */
final class RedirectedRequest extends AbstractClientHttpRequest implements StreamingHttpOutputMessage {
  private static final Set<Integer> REDIRECTS = Set.of(301, 302, 303, 307, 308);
  private static final List<String> CREDENTIALS =
      List.of(HttpHeaders.AUTHORIZATION, HttpHeaders.PROXY_AUTHORIZATION, HttpHeaders.COOKIE, HttpHeaders.HOST);

  private final ClientHttpRequestFactory single;
  private final ProxySelector proxies;
  private final int most;
  private final URI uri;
  private final HttpMethod method;
  private URI at; // of the request that was made last, as the following
  private HttpMethod by;
  private Body body; // null for none
  private ByteArrayOutputStream written; // of whom writes one by itself

  RedirectedRequest(ClientHttpRequestFactory single, ProxySelector proxies, int most, URI uri, HttpMethod method) {
    this.single = single;
    this.proxies = proxies;
    this.most = most;
    this.uri = uri;
    this.method = method;
    this.at = uri;
    this.by = method;
  }

  @Override
  public HttpMethod getMethod() {
    return method;
  }

  @Override
  public URI getURI() {
    return uri;
  }

  @Override
  public void setBody(Body given) {
    assertNotExecuted();
    body = given;
  }

  @Override
  protected OutputStream getBodyInternal(HttpHeaders headers) {
    if (written == null) {
      written = new ByteArrayOutputStream();
      body = new Body() {
        @Override
        public void writeTo(OutputStream out) throws IOException {
          written.writeTo(out);
        }

        @Override
        public boolean repeatable() {
          return true;
        }
      };
    }
    return written;
  }

  @Override
  protected ClientHttpResponse executeInternal(HttpHeaders given) throws IOException {
    HttpHeaders headers = new HttpHeaders();
    given.forEach(headers::addAll);
    JudgedCall call = JudgedCall.current();
    ClientHttpResponse response = judged(call, headers);
    for (int redirects = 0; redirects < most; redirects++) {
      int status = response.getStatusCode().value();
      URI next = REDIRECTS.contains(status) ? target(response.getHeaders().getFirst(HttpHeaders.LOCATION)) : null;
      HttpMethod then = next == null ? by : methodAfter(status);
      if (next == null || (then == by && body != null && !body.repeatable())) {
        break;
      }
      if (call != null) {
        SpringHeaders.merge(response, call.host());
      }
      response.close();
      turnTo(next, then, headers);
      response = judged(call, headers);
    }
    return response;
  }

  private ClientHttpResponse judged(JudgedCall call, HttpHeaders headers) throws IOException {
    if (call == null) {
      return send(headers);
    }
    call.leadsTo(Proxies.judgedHost(at, proxies));
    Outgoing outgoing = SpringHeaders.judge(headers, call.host());
    try (Scope approved = Propagation.approved(outgoing.text())) {
      return send(headers);
    }
  }

  private ClientHttpResponse send(HttpHeaders headers) throws IOException {
    ClientHttpRequest request = single.createRequest(at, by);
    headers.forEach(request.getHeaders()::addAll);
    request.getAttributes().putAll(getAttributes());
    if (body != null && request instanceof StreamingHttpOutputMessage streaming) {
      streaming.setBody(body);
    } else if (body != null) {
      body.writeTo(request.getBody());
    }
    return request.execute();
  }

  /** Where a redirect leads; null where it is not followed. */
  private URI target(String location) {
    try {
      if (location == null) {
        return null;
      }
      URI next = absolute(location);
      String scheme = String.valueOf(next.getScheme()).toLowerCase(Locale.ROOT);
      boolean isKnown = scheme.equals("https") || (scheme.equals("http") && at.getScheme().equalsIgnoreCase("http"));
      return isKnown && next.getHost() != null ? next : null;
    } catch (IllegalArgumentException noUri) {
      return null;
    }
  }

  /** As RFC 3986 has it; {@code URI} alone follows the one before that. */
  private URI absolute(String location) {
    boolean hasPath = at.getRawPath() != null && !at.getRawPath().isEmpty();
    if (location.startsWith("?")) {
      return URI.create(at.getScheme() + "://" + at.getRawAuthority() + (hasPath ? at.getRawPath() : "/") + location);
    }
    return (hasPath ? at : at.resolve("/")).resolve(location);
  }

  private HttpMethod methodAfter(int status) {
    boolean isGet = status == 303 ? by != HttpMethod.HEAD : status <= 302 && by == HttpMethod.POST;
    return isGet ? HttpMethod.GET : by;
  }

  private void turnTo(URI next, HttpMethod then, HttpHeaders headers) {
    if (then != by) {
      body = null;
      for (String name : List.copyOf(headers.keySet())) {
        if (name.toLowerCase(Locale.ROOT).startsWith("content-") || name.equalsIgnoreCase(HttpHeaders.TRANSFER_ENCODING)) {
          headers.remove(name);
        }
      }
    }
    if (!isSameOrigin(at, next)) {
      CREDENTIALS.forEach(headers::remove);
    }
    at = next;
    by = then;
  }

  private static boolean isSameOrigin(URI one, URI other) {
    return one.getScheme().equalsIgnoreCase(other.getScheme())
        && one.getHost().equalsIgnoreCase(other.getHost())
        && port(one) == port(other);
  }

  private static int port(URI uri) {
    return uri.getPort() >= 0 ? uri.getPort() : uri.getScheme().equalsIgnoreCase("https") ? 443 : 80;
  }
}
