package dev.antipode.http;

import dev.antipode.propagation.Caller;
import dev.antipode.propagation.Carriers;
import dev.antipode.propagation.Carriers.InboundHeaders;
import dev.antipode.propagation.Header;
import dev.antipode.propagation.Inbound;
import dev.antipode.shim.TrustRules;
import io.opentelemetry.context.Scope;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletRequestWrapper;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.ServletResponseWrapper;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * Opens a scope for every request, and answers with what the request added to its lineage (PROP-13, PROP-22).
 *
 * <pre>{@code
 * FilterRegistration.Dynamic filter = context.addFilter("antipode", new AntipodeFilter());
 * filter.setAsyncSupported(true);
 * filter.addMappingForUrlPatterns(EnumSet.of(REQUEST, ASYNC, ERROR), false, "/*"); // of DispatcherType
 * }</pre>
 *
 * <p>It belongs outside of all filters, those for proxies too. The header leaves as late as it may: with the first byte that
 * the container sends.
 */
public final class AntipodeFilter implements Filter {
  /**
   * A request attribute: the {@link Caller} as a container received the request. Set it before something that is no filter
   * changes address and headers, such as Tomcat's {@code RemoteIpValve}; else its callers are not believed (TRUST-33).
   */
  public static final String RECEIVED = AntipodeFilter.class.getName() + ".received";

  private static final String MARK = AntipodeFilter.class.getName();
  private static final String TOMCATS_VALVE = "org.apache.tomcat.request.forwarded";
  private static final String SPRINGS_ROUTE = "org.springframework.web.servlet.HandlerMapping.bestMatchingPattern";

  private final boolean edge;

  /** A filter as the settings have it. */
  public AntipodeFilter() {
    this(false);
  }

  /**
   * A filter; {@code edge}: callers of this application are outside, nothing of theirs is taken and nothing goes back to
   * them (TRUST-4). It adds to the setting.
   *
   * @throws dev.antipode.ConfigurationException where the settings of trust are wrong
   */
  public AntipodeFilter(boolean edge) {
    this.edge = edge;
    TrustRules.check();
  }

  /** Runs the application in the request's scope. */
  @Override
  public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
      throws IOException, ServletException {
    if (!(request instanceof HttpServletRequest http) || !(response instanceof HttpServletResponse answer)) {
      chain.doFilter(request, response);
    } else if (request.getAttribute(MARK) instanceof FilterExchange known) {
      again(known, request, response, chain);
    } else {
      first(http, answer, chain);
    }
  }

  /** The request and response of one exchange, as the application sees them. */
  private record FilterExchange(Inbound inbound, InboundRequest request, InboundResponse response) {}

  private void first(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
      throws IOException, ServletException {
    HttpServletRequest received = innermost(request);
    InboundHeaders came = Carriers.read(lines(received));
    Inbound inbound = new Inbound(came, caller(request, received, came), edge);
    String method = request.getMethod();
    inbound.scope().endpoint(() -> method + " " + route(request));
    // By the method that came in caches decide, whatever a filter outside of us has made of it.
    InboundResponse answered = new InboundResponse(response, inbound, received.getMethod());
    InboundRequest asked = new InboundRequest(request, inbound, answered, came.hasLineage());
    request.setAttribute(MARK, new FilterExchange(inbound, asked, answered));
    run(inbound, asked, answered, () -> chain.doFilter(asked, answered));
  }

  /** A nested filter or forward, the thread in which an asynchronous request goes on, or the page of an error. */
  private static void again(FilterExchange known, ServletRequest request, ServletResponse response, FilterChain chain)
      throws IOException, ServletException {
    ServletResponse answer = response;
    if (request.getDispatcherType() == DispatcherType.ERROR) {
      known.response().sendLineage(); // the container answers for the application that threw
      if (response != known.response()
          && !(response instanceof ServletResponseWrapper wrapper && wrapper.isWrapperFor(known.response()))) {
        known.response().startAnew(response); // the container's own, or what it and filters have made of that
        answer = known.response();
      }
    }
    ServletResponse given = answer;
    if (Inbound.current() == known.inbound()) {
      chain.doFilter(request, given);
    } else {
      run(known.inbound(), known.request(), known.response(), () -> chain.doFilter(request, given));
    }
  }

  private interface Work {
    void run() throws IOException, ServletException;
  }

  private static void run(Inbound inbound, HttpServletRequest request, InboundResponse response, Work work)
      throws IOException, ServletException {
    boolean goesOn = false;
    try (Scope current = inbound.makeCurrent()) {
      work.run();
      goesOn = request.isAsyncStarted();
      if (goesOn) {
        request.getAsyncContext().addListener(new Ending(inbound));
      } else {
        response.sendLineage();
      }
    } finally {
      if (!goesOn) {
        inbound.close();
      }
    }
  }

  /** The container's own request, below what filters have made of it (TRUST-33). */
  private static HttpServletRequest innermost(HttpServletRequest request) {
    ServletRequest inner = request;
    while (inner instanceof ServletRequestWrapper wrapper) {
      inner = wrapper.getRequest();
    }
    return inner instanceof HttpServletRequest http ? http : request;
  }

  private static List<Header> lines(HttpServletRequest request) {
    List<Header> lines = new ArrayList<>();
    for (String name : Collections.list(request.getHeaderNames())) {
      for (String value : Collections.list(request.getHeaders(name))) {
        lines.add(new Header(name, value));
      }
    }
    return lines;
  }

  /**
   * Return who sent it. Containers tell one address, which their reading of the headers may have put in the peer's place;
   * Tomcat's valve says that it looked, and takes the headers out.
   */
  private static Caller caller(HttpServletRequest request, HttpServletRequest received, InboundHeaders came) {
    Set<String> shown = new LinkedHashSet<>();
    for (String address : Arrays.asList(received.getRemoteAddr(), request.getRemoteAddr())) {
      if (address != null) {
        shown.add(address);
      }
    }
    if (received.getAttribute(RECEIVED) instanceof Caller known) {
      return new Caller(known.peer(), known.isPeerCertain(), known.forwarded(), List.copyOf(shown));
    }
    List<Header> forwarded = new ArrayList<>(came.forwarded());
    if (received.getAttribute(TOMCATS_VALVE) != null) {
      forwarded.add(new Header("X-Forwarded-For", received.getRemoteAddr()));
    }
    return new Caller(received.getRemoteAddr(), false, forwarded, List.copyOf(shown));
  }

  /** The route that the framework has found by now; the path itself may hold keys (REC-7, REC-8). */
  private static String route(HttpServletRequest request) {
    Object pattern = request.getAttribute(SPRINGS_ROUTE);
    return pattern == null ? "request" : pattern.toString();
  }

  /** Ends the scope of an asynchronous request with it. */
  private record Ending(Inbound inbound) implements AsyncListener {
    @Override
    public void onComplete(AsyncEvent event) {
      inbound.close();
    }

    @Override
    public void onTimeout(AsyncEvent event) {
      inbound.expire(); // `onComplete` follows
    }

    @Override
    public void onError(AsyncEvent event) {
      // `onComplete` follows
    }

    @Override
    public void onStartAsync(AsyncEvent event) {
      event.getAsyncContext().addListener(this); // listeners are not kept when it starts again
    }
  }
}
