package dev.antipode.http;

import dev.antipode.ConfigurationException;
import java.io.IOException;
import java.lang.reflect.Field;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import org.springframework.http.HttpMethod;
import org.springframework.http.client.ClientHttpRequest;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.http.client.SimpleClientHttpRequestFactory;

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
  private static final int MOST = 20;
  private static final String APACHES = "org.springframework.http.client.HttpComponentsClientHttpRequestFactory";

  private final ClientHttpRequestFactory single;
  private final HttpClient client;
  private final int most;

  /**
   * Round a factory.
   *
   * @param single follows no redirects; else it takes lineages along to hosts that nobody has judged
   * @throws ConfigurationException for a factory of Spring's that is known to follow redirects, or to repeat calls unseen
   *     ({@link ApacheAttempts})
   */
  public JudgedRedirects(ClientHttpRequestFactory single) {
    this(single, MOST);
  }

  private JudgedRedirects(ClientHttpRequestFactory single, int most) {
    this.client = clientOf(single);
    boolean follows = client != null && client.followRedirects() != HttpClient.Redirect.NEVER;
    if (follows || single.getClass() == SimpleClientHttpRequestFactory.class) {
      throw new ConfigurationException(
          "AP501",
          single.getClass().getSimpleName() + " follows redirects by itself, and takes a lineage along to a host that nobody has "
              + "judged: want new JdkClientHttpRequestFactory(HttpClient.newBuilder().followRedirects(Redirect.NEVER).build())");
    }
    if (single.getClass().getName().equals(APACHES) && ApacheAttempts.areUnseen(single)) {
      throw new ConfigurationException(
          "AP501",
          single.getClass().getSimpleName() + ": its client repeats calls by itself, and what an attempt before brought back "
              + "would be lost: build it with ApacheAttempts.see(builder), or with disableAutomaticRetries()");
    }
    this.single = single;
    this.most = most;
  }

  /**
   * Return a factory that judges each request, and gives a redirect back as the response.
   *
   * @param single as for the constructor, and throws as that does
   */
  public static JudgedRedirects withoutFollowing(ClientHttpRequestFactory single) {
    return new JudgedRedirects(single, 0);
  }

  /** The JDK's client beneath; null where there is another, or it cannot be seen: then the caller's word stands. */
  private static HttpClient clientOf(ClientHttpRequestFactory factory) {
    try {
      if (factory.getClass() == JdkClientHttpRequestFactory.class) {
        Field field = JdkClientHttpRequestFactory.class.getDeclaredField("httpClient");
        field.setAccessible(true);
        return (HttpClient) field.get(factory);
      }
    } catch (ReflectiveOperationException | RuntimeException elsewhere) {
      return null;
    }
    return null;
  }

  @Override
  public ClientHttpRequest createRequest(URI uri, HttpMethod method) throws IOException {
    ProxySelector own = client == null ? null : client.proxy().orElse(null);
    return new RedirectedRequest(single, own == null ? ProxySelector.getDefault() : own, most, uri, method);
  }
}
