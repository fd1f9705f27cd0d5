package dev.antipode.http;

import dev.antipode.propagation.Carriers;
import dev.antipode.propagation.Inbound;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;

/** The request without the lineage: nothing behind the filter passes it on unjudged (TRUST-5). */
final class InboundRequest extends HttpServletRequestWrapper {
  private final Inbound inbound;
  private final InboundResponse response;
  private final boolean strips;
  private AsyncContext async;

  InboundRequest(HttpServletRequest request, Inbound inbound, InboundResponse response, boolean strips) {
    super(request);
    this.inbound = inbound;
    this.response = response;
    this.strips = strips;
  }

  @Override
  public String getHeader(String name) {
    return strips && isCarrier(name) ? first(getHeaders(name)) : super.getHeader(name);
  }

  private static String first(Enumeration<String> values) {
    return values.hasMoreElements() ? values.nextElement() : null;
  }

  @Override
  public Enumeration<String> getHeaders(String name) {
    Enumeration<String> values = super.getHeaders(name);
    if (!strips || !isCarrier(name)) {
      return values;
    }
    List<String> rest = new ArrayList<>();
    if (Carriers.BAGGAGE_HEADER.equalsIgnoreCase(name)) {
      for (String value : Collections.list(values)) {
        String line = Carriers.withoutMember(value);
        if (!line.isEmpty()) {
          rest.add(line);
        }
      }
    }
    return Collections.enumeration(rest);
  }

  @Override
  public Enumeration<String> getHeaderNames() {
    if (!strips) {
      return super.getHeaderNames();
    }
    List<String> names = new ArrayList<>(Collections.list(super.getHeaderNames()));
    names.removeIf(name -> isCarrier(name) && !getHeaders(name).hasMoreElements());
    return Collections.enumeration(names);
  }

  private static boolean isCarrier(String name) {
    return Carriers.ALL.stream().anyMatch(carrier -> carrier.equalsIgnoreCase(name));
  }

  // What goes on in another thread answers by our response, too.

  @Override
  public AsyncContext startAsync() {
    return startAsync(this, response);
  }

  @Override
  public AsyncContext startAsync(ServletRequest request, ServletResponse given) {
    AsyncContext inner = super.startAsync(request, given);
    inner.addListener(new Expiry(inbound));
    async = new InboundAsync(inner, response);
    return async;
  }

  @Override
  public AsyncContext getAsyncContext() {
    AsyncContext own = super.getAsyncContext();
    return async != null && isAsyncStarted() ? async : own;
  }
}
