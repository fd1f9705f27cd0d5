package dev.antipode.http;

import dev.antipode.LineageScope;
import dev.antipode.propagation.Carriers;
import dev.antipode.propagation.Header;
import dev.antipode.propagation.HeaderCarrier;
import dev.antipode.propagation.Propagation;
import dev.antipode.propagation.Propagation.Outgoing;
import io.opentelemetry.context.Scope;
import java.io.IOException;
import java.net.Authenticator;
import java.net.CookieHandler;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandler;
import java.net.http.HttpResponse.PushPromiseHandler;
import java.net.http.WebSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;

/** Round an HTTP client: judges where a request goes, and takes what its response brings. */
final class CarryingHttpClient extends HttpClient {
  private final HttpClient inner;

  CarryingHttpClient(HttpClient inner) {
    this.inner = inner;
  }

  @Override
  public <T> HttpResponse<T> send(HttpRequest request, BodyHandler<T> handler) throws IOException, InterruptedException {
    String host = host(request);
    Outgoing outgoing = Propagation.prepareRequest(new Read(request.headers()), host);
    try (Scope call = Propagation.approved(outgoing.text())) {
      HttpResponse<T> response = inner.send(changed(request, outgoing), handler);
      answered(LineageScope.current(), response, host);
      return response;
    } catch (IOException | InterruptedException e) {
      failed(LineageScope.current(), host, e);
      throw e;
    }
  }

  @Override
  public <T> CompletableFuture<HttpResponse<T>> sendAsync(HttpRequest request, BodyHandler<T> handler) {
    String host = host(request);
    Outgoing outgoing = Propagation.prepareRequest(new Read(request.headers()), host);
    return carried(host, outgoing, () -> inner.sendAsync(changed(request, outgoing), handler));
  }

  @Override
  public <T> CompletableFuture<HttpResponse<T>> sendAsync(
      HttpRequest request, BodyHandler<T> handler, PushPromiseHandler<T> pushed) {
    String host = host(request);
    Outgoing outgoing = Propagation.prepareRequest(new Read(request.headers()), host);
    return carried(host, outgoing, () -> inner.sendAsync(changed(request, outgoing), handler, pushed));
  }

  /** What depends on the future sees a scope that has what the response brought. */
  private static <T> CompletableFuture<HttpResponse<T>> carried(
      String host, Outgoing outgoing, Supplier<CompletableFuture<HttpResponse<T>>> send) {
    LineageScope scope = LineageScope.current();
    try (Scope call = Propagation.approved(outgoing.text())) {
      return send.get().whenComplete((response, error) -> {
        if (error == null) {
          answered(scope, response, host);
        } else {
          failed(scope, host, error instanceof CompletionException ? error.getCause() : error);
        }
      });
    }
  }

  private static void answered(LineageScope scope, HttpResponse<?> response, String host) {
    List<String> values = response.headers().allValues(Carriers.LINEAGE_HEADER);
    URI asked = response.request() == null ? null : response.request().uri();
    boolean isOther = asked != null && !asked.equals(response.uri()); // a client that follows redirects all the same
    Propagation.answered(scope, values, isOther ? Proxies.hostOf(response.uri()) : host, response.statusCode());
  }

  /** A call that may have left and brought no answer (PROP-27). */
  private static void failed(LineageScope scope, String host, Throwable error) {
    if (!Failures.neverLeft(error)) {
      Propagation.unanswered(scope, host, error == null ? "no answer" : error.getClass().getSimpleName());
    }
  }

  private String host(HttpRequest request) {
    return Proxies.judgedHost(request.uri(), inner.proxy().orElse(ProxySelector.getDefault()));
  }

  private static HttpRequest changed(HttpRequest request, Outgoing outgoing) {
    if (outgoing.changes().isEmpty()) {
      return request;
    }
    HttpRequest.Builder builder = HttpRequest.newBuilder(
        request, (name, value) -> !outgoing.changes().containsKey(name.toLowerCase(Locale.ROOT)));
    outgoing.changes().forEach((name, value) -> {
      if (value != null) {
        builder.setHeader(name, value);
      }
    });
    return builder.build();
  }

  /** A request's headers, which cannot be changed in place. */
  private record Read(HttpHeaders headers) implements HeaderCarrier {
    @Override
    public Iterable<Header> lines() {
      List<Header> lines = new ArrayList<>();
      headers.map().forEach((name, values) -> values.forEach(value -> lines.add(new Header(name, value))));
      return lines;
    }

    @Override
    public void set(String name, String value) {
      throw new UnsupportedOperationException();
    }

    @Override
    public void remove(String name) {
      throw new UnsupportedOperationException();
    }
  }

  // What the client is

  @Override
  public Optional<CookieHandler> cookieHandler() {
    return inner.cookieHandler();
  }

  @Override
  public Optional<Duration> connectTimeout() {
    return inner.connectTimeout();
  }

  @Override
  public Redirect followRedirects() {
    return inner.followRedirects();
  }

  @Override
  public Optional<ProxySelector> proxy() {
    return inner.proxy();
  }

  @Override
  public SSLContext sslContext() {
    return inner.sslContext();
  }

  @Override
  public SSLParameters sslParameters() {
    return inner.sslParameters();
  }

  @Override
  public Optional<Authenticator> authenticator() {
    return inner.authenticator();
  }

  @Override
  public Version version() {
    return inner.version();
  }

  @Override
  public Optional<Executor> executor() {
    return inner.executor();
  }

  @Override
  public WebSocket.Builder newWebSocketBuilder() {
    return inner.newWebSocketBuilder();
  }
}
