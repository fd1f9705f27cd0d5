package dev.antipode.http;

import dev.antipode.LineageScope;
import dev.antipode.observer.Observers;
import dev.antipode.propagation.Carriers;
import dev.antipode.propagation.Propagation;
import dev.antipode.shim.Logs;
import dev.antipode.shim.TrustRules;
import io.opentelemetry.context.Scope;
import java.io.IOException;
import org.springframework.http.HttpRequest;
import org.springframework.http.client.ClientHttpRequestExecution;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.http.client.ClientHttpResponse;

/**
 * For Spring's {@code RestTemplate} and {@code RestClient}: lineages go out to approved hosts and come back (PROP-8,
 * PROP-14).
 *
 * <pre>{@code
 * HttpClient client = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NEVER).build();
 * restTemplate.setRequestFactory(new JudgedRedirects(new JdkClientHttpRequestFactory(client)));
 * restTemplate.getInterceptors().add(new AntipodeClientInterceptor());
 * }</pre>
 *
 * <p>A request factory that follows redirects by itself does so behind this: where none of ours stands beneath, no lineage goes
 * out and none is taken, and a log line says so (TRUST-34).
 */
public final class AntipodeClientInterceptor implements ClientHttpRequestInterceptor {
  /**
   * An interceptor.
   *
   * @throws dev.antipode.ConfigurationException where the settings of trust are wrong
   */
  public AntipodeClientInterceptor() {
    TrustRules.check();
  }

  /** Has the factory beneath judge where the request goes, and takes what its response brings. */
  @Override
  public ClientHttpResponse intercept(HttpRequest request, byte[] body, ClientHttpRequestExecution execution)
      throws IOException {
    String host = Proxies.hostOf(request.getURI());
    SpringHeaders.strip(request.getHeaders());
    try (JudgedCall call = new JudgedCall(host)) {
      try (Scope nothing = Propagation.approved(null)) {
        ClientHttpResponse response = execution.execute(request, body);
        if (call.isJudged()) {
          SpringHeaders.merge(response, call.host());
        } else {
          sayUnjudged(response, host);
        }
        return response;
      } catch (IOException e) {
        if (!Failures.neverLeft(e)) {
          Propagation.unanswered(call.host(), e.getClass().getSimpleName());
        }
        throw e;
      }
    }
  }

  /** Who has answered is not known, nor who would have got a lineage: the factory may have followed a redirect. */
  private static void sayUnjudged(ClientHttpResponse response, String host) {
    LineageScope scope = LineageScope.current();
    boolean brought = response.getHeaders().containsKey(Carriers.LINEAGE_HEADER);
    if (!Propagation.expects(scope, host) || !brought && !scope.lineage().hasContent()) {
      return;
    }
    String words = "a RestTemplate or RestClient carries no lineage: its request factory may follow redirects by itself, to "
        + "hosts that nobody has judged";
    scope.noteGap("untrusted", "", words);
    Observers.events().onLineageDropped("untrusted", brought ? "response_in" : "request_out");
    Logs.warn(
        "AP404",
        "redirects unjudged",
        words + ". Give it one that follows none, as new JudgedRedirects(factory), or JudgedRedirects.withoutFollowing(factory).",
        "dropped");
  }
}
