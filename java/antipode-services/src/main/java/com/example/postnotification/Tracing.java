package com.example.postnotification;

import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.context.propagation.TextMapSetter;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.util.Iterator;
import java.util.Map;

/** OpenTelemetry as an application uses it: spans of its own, none exported, and W3C headers. */
final class Tracing implements Filter {
  private static final TextMapPropagator W3C =
      TextMapPropagator.composite(W3CTraceContextPropagator.getInstance(), W3CBaggagePropagator.getInstance());
  private static final Tracer TRACER = SdkTracerProvider.builder().build().get("post-notification");

  /** Continues the trace and the baggage of a request. */
  @Override
  public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
      throws IOException, ServletException {
    HttpServletRequest http = (HttpServletRequest) request;
    try (Current current = continued(http, Requests.INSTANCE, http.getMethod(), SpanKind.SERVER)) {
      chain.doFilter(request, response);
    }
  }

  /** Puts the current trace and baggage into what leaves. */
  static <C> void inject(C carrier, TextMapSetter<C> setter) {
    W3C.inject(Context.current(), carrier, setter);
  }

  /** Continues the trace and the baggage of a message until it is closed. */
  static Current receiving(Map<String, String> headers) {
    return continued(headers, Texts.INSTANCE, "notifications process", SpanKind.CONSUMER);
  }

  /** A span round a message that is sent, until it is closed. */
  static Current sending() {
    return new Current(Context.current(), "notifications publish", SpanKind.PRODUCER);
  }

  /** The trace that this code runs in. */
  static String traceId() {
    return Span.current().getSpanContext().getTraceId();
  }

  /** The application's own entry of baggage; empty where it got lost. */
  static String requestBaggage() {
    String value = Baggage.current().getEntryValue("benchmark-request");
    return value == null ? "" : value;
  }

  private static <C> Current continued(C carrier, TextMapGetter<C> getter, String name, SpanKind kind) {
    return new Current(W3C.extract(Context.current(), carrier, getter), name, kind);
  }

  /** A span that is current. */
  static final class Current implements AutoCloseable {
    private final Span span;
    private final Scope scope;

    private Current(Context parent, String name, SpanKind kind) {
      span = TRACER.spanBuilder(name).setParent(parent).setSpanKind(kind).startSpan();
      scope = parent.with(span).makeCurrent();
    }

    @Override
    public void close() {
      scope.close();
      span.end();
    }
  }

  private enum Requests implements TextMapGetter<HttpServletRequest> {
    INSTANCE;

    @Override
    public String get(HttpServletRequest request, String name) {
      return request.getHeader(name);
    }

    @Override
    public Iterator<String> getAll(HttpServletRequest request, String name) {
      return request.getHeaders(name).asIterator();
    }
  }

  private enum Texts implements TextMapGetter<Map<String, String>> {
    INSTANCE;

    @Override
    public String get(Map<String, String> headers, String name) {
      return headers.get(name);
    }
  }
}
