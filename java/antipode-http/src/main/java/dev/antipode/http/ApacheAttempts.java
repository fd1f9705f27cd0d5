package dev.antipode.http;

import dev.antipode.LineageScope;
import dev.antipode.propagation.Carriers;
import dev.antipode.propagation.Propagation;
import java.io.IOException;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import org.apache.hc.client5.http.classic.ExecChain;
import org.apache.hc.client5.http.classic.ExecChainHandler;
import org.apache.hc.client5.http.impl.ChainElement;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.client5.http.impl.classic.HttpRequestRetryExec;
import org.apache.hc.core5.http.ClassicHttpRequest;
import org.apache.hc.core5.http.ClassicHttpResponse;
import org.apache.hc.core5.http.Header;
import org.apache.hc.core5.http.HttpException;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;

/**
 * Sees each attempt of Apache's client, which repeats calls by itself: on 429, 503 and broken connections (PROP-30).
 *
 * <pre>{@code
 * HttpClient client = ApacheAttempts.see(HttpClients.custom()).disableRedirectHandling().build();
 * restTemplate.setRequestFactory(new JudgedRedirects(new HttpComponentsClientHttpRequestFactory(client)));
 * }</pre>
 */
public final class ApacheAttempts {
  private static final String NAME = "antipode-attempts";

  private ApacheAttempts() {}

  /** Have the clients of this builder give back the lineage of each attempt; returns the builder. */
  public static HttpClientBuilder see(HttpClientBuilder builder) {
    return builder.addExecInterceptorBefore(ChainElement.CONNECT.name(), NAME, new Attempt());
  }

  /** Return whether a factory's client repeats calls, and nobody sees it; one that cannot be looked at does not. */
  static boolean areUnseen(ClientHttpRequestFactory factory) {
    try {
      Object element = of(((HttpComponentsClientHttpRequestFactory) factory).getHttpClient(), "execChain");
      boolean repeats = false;
      for (; element != null; element = of(element, "next")) {
        Object handler = of(element, "handler");
        if (handler instanceof Attempt) {
          return false;
        }
        repeats |= handler instanceof HttpRequestRetryExec;
      }
      return repeats;
    } catch (ReflectiveOperationException | RuntimeException elsewhere) {
      return false;
    }
  }

  private static Object of(Object owner, String name) throws ReflectiveOperationException {
    Field field = owner.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(owner);
  }

  /** One request on a connection. */
  private static final class Attempt implements ExecChainHandler {
    @Override
    public ClassicHttpResponse execute(ClassicHttpRequest request, ExecChain.Scope scope, ExecChain chain)
        throws IOException, HttpException {
      JudgedCall call = JudgedCall.current();
      if (call == null || !call.isJudged()) {
        return chain.proceed(request, scope);
      }
      try {
        ClassicHttpResponse response = chain.proceed(request, scope);
        List<String> values = new ArrayList<>();
        for (Header header : response.getHeaders(Carriers.LINEAGE_HEADER)) {
          values.add(header.getValue());
        }
        Propagation.answered(LineageScope.current(), values, call.host(), response.getCode());
        return response;
      } catch (IOException | HttpException error) {
        if (!Failures.neverLeft(error)) {
          Propagation.unanswered(call.host(), error.getClass().getSimpleName());
        }
        throw error;
      }
    }
  }
}
