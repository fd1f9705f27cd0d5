package dev.antipode.http;

import dev.antipode.propagation.Carriers;
import dev.antipode.propagation.Carriers.Arrived;
import dev.antipode.propagation.Header;
import dev.antipode.propagation.Inbound;
import dev.antipode.trust.TrustSettings;
import io.opentelemetry.context.Scope;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Opens a scope for every request, and answers with what the request added to its lineage (PROP-13, PROP-22).
 *
 * <pre>{@code
 * FilterRegistration.Dynamic filter = context.addFilter("antipode", new AntipodeFilter());
 * filter.setAsyncSupported(true);
 * filter.addMappingForUrlPatterns(EnumSet.of(REQUEST, ASYNC, ERROR), false, "/*"); // of DispatcherType
 * }</pre>
 *
 * <p>It belongs outside of all filters that write to stores. The header leaves as late as it may: with the first byte that
 * the container sends.
 */
public final class AntipodeFilter implements Filter {
  private static final String MARK = AntipodeFilter.class.getName();
  private static final String TOMCATS_PEER = "org.apache.tomcat.peerAddr";
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
    TrustSettings.inForce();
  }

  /** Runs the application in the request's scope. */
  @Override
  public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
      throws IOException, ServletException {
    if (!(request instanceof HttpServletRequest http) || !(response instanceof HttpServletResponse answer)) {
      chain.doFilter(request, response);
    } else if (request.getAttribute(MARK) instanceof Exchanged known) {
      again(known, request, response, chain);
    } else {
      first(http, answer, chain);
    }
  }

  /** The request and response of one exchange, as the application sees them. */
  private record Exchanged(Inbound inbound, InboundRequest request, InboundResponse response) {}

  private void first(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
      throws IOException, ServletException {
    Arrived came = Carriers.read(lines(request));
    Inbound inbound = new Inbound(came, peer(request), edge);
    String method = request.getMethod();
    inbound.scope().endpoint(() -> method + " " + route(request));
    InboundResponse answered = new InboundResponse(response, inbound);
    InboundRequest asked = new InboundRequest(request, answered, !came.texts().isEmpty());
    request.setAttribute(MARK, new Exchanged(inbound, asked, answered));
    run(inbound, asked, answered, () -> chain.doFilter(asked, answered));
  }

  /** A nested filter or forward, the thread in which an asynchronous request goes on, or the page of an error. */
  private static void again(Exchanged known, ServletRequest request, ServletResponse response, FilterChain chain)
      throws IOException, ServletException {
    if (request.getDispatcherType() == DispatcherType.ERROR) {
      known.response().sendLineage(); // the container answers for the application that threw
    }
    if (Inbound.current() == known.inbound()) {
      chain.doFilter(request, response);
    } else {
      run(known.inbound(), known.request(), known.response(), () -> chain.doFilter(request, response));
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

  private static List<Header> lines(HttpServletRequest request) {
    List<Header> lines = new ArrayList<>();
    for (String name : Collections.list(request.getHeaderNames())) {
      for (String value : Collections.list(request.getHeaders(name))) {
        lines.add(new Header(name, value));
      }
    }
    if (request.getAttribute(TOMCATS_PEER) instanceof String peer && !peer.equals(request.getRemoteAddr())) {
      lines.add(new Header("x-forwarded-for", request.getRemoteAddr())); // Tomcat's valve for proxies has taken it out
    }
    return lines;
  }

  /** The socket's peer; Tomcat's valve for proxies puts the address of a forwarding header in its place. */
  private static String peer(HttpServletRequest request) {
    return request.getAttribute(TOMCATS_PEER) instanceof String peer ? peer : request.getRemoteAddr();
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
      // `onComplete` follows
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
