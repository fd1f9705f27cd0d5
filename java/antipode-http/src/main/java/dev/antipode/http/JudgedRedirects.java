package dev.antipode.http;

import java.io.IOException;
import java.net.URI;
import org.springframework.http.HttpMethod;
import org.springframework.http.client.ClientHttpRequest;
import org.springframework.http.client.ClientHttpRequestFactory;

/**
 * A request factory of Spring's that follows redirects itself, one request each: behind an {@link AntipodeClientInterceptor}
 * every host that one leads to is judged anew, and so is what that host answers (TRUST-26).
 *
 * <pre>{@code
 * HttpClient client = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NEVER).build();
 * restTemplate.setRequestFactory(new JudgedRedirects(new JdkClientHttpRequestFactory(client)));
 * }</pre>
 *
 * <p>It follows 301, 302, 303, 307 and 308 as {@code HttpClient.Redirect.NORMAL} does: never from https to http, and after 301
 * and 302 a POST becomes a GET, after 303 all but a HEAD. To another origin no {@code Authorization}, {@code Cookie} or
 * {@code Host} of the request goes along. After 20, or where it cannot follow, the redirect itself is the response.
 */
public final class JudgedRedirects implements ClientHttpRequestFactory {
  private final ClientHttpRequestFactory single;

  /**
   * Round a factory.
   *
   * @param single follows no redirects; else it takes lineages along to hosts that nobody has judged
   */
  public JudgedRedirects(ClientHttpRequestFactory single) {
    this.single = single;
  }

  @Override
  public ClientHttpRequest createRequest(URI uri, HttpMethod method) throws IOException {
    return new RedirectedRequest(single, uri, method);
  }
}
