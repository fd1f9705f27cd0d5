package com.example.postnotification;

import dev.antipode.http.AntipodeFilter;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.File;
import java.io.IOException;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

/** A service's server: bound at once, answering when it is opened. Outermost it counts, and takes the benchmark's questions. */
final class Door {
  private static final String CONTROL = "/-/";
  private static final String KEPT_ALIVE_MS = "300000";

  /** The attribute of a request that has the size of its headers. */
  static final String SIZE = Traffic.Size.class.getName();

  private final Tomcat tomcat = new Tomcat();

  Door(String name, File folder) throws LifecycleException {
    tomcat.setBaseDir(new File(folder, name).getPath());
    tomcat.setSilent(true);
    Connector connector = tomcat.getConnector();
    connector.setPort(0);
    connector.setProperty("address", "127.0.0.1");
    connector.setProperty("keepAliveTimeout", KEPT_ALIVE_MS);
    connector.setProperty("maxKeepAliveRequests", "-1");
    tomcat.init(); // binds
  }

  int port() {
    return tomcat.getConnector().getLocalPort();
  }

  /** Answers from now on. */
  void open(Service service, boolean antipode) throws LifecycleException {
    Context context = tomcat.addContext("", null);
    filter(context, "door", new Counting(service, new Traffic()));
    filter(context, "tracing", new Tracing());
    if (antipode) {
      filter(context, "antipode", new AntipodeFilter());
    }
    Tomcat.addServlet(context, "service", new Serving(service));
    context.addServletMappingDecoded("/*", "service");
    tomcat.start();
  }

  private static void filter(Context context, String name, Filter filter) {
    FilterDef definition = new FilterDef();
    definition.setFilterName(name);
    definition.setFilter(filter);
    context.addFilterDef(definition);
    FilterMap mapping = new FilterMap();
    mapping.setFilterName(name);
    mapping.addURLPattern("/*");
    mapping.setDispatcher(DispatcherType.REQUEST.name());
    context.addFilterMap(mapping);
  }

  private static void send(HttpServletResponse response, Answer answer) throws IOException {
    response.setStatus(answer.status());
    response.setContentType(answer.type());
    answer.headers().forEach(response::setHeader);
    response.setContentLength(answer.body().length);
    response.getOutputStream().write(answer.body());
  }

  /** Outside of all other filters. */
  private record Counting(Service service, Traffic traffic) implements Filter {
    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
        throws IOException, ServletException {
      HttpServletRequest asked = (HttpServletRequest) request;
      HttpServletResponse answered = (HttpServletResponse) response;
      if (Service.is(asked, "GET", CONTROL + "traffic")) {
        send(answered, Answer.json(200, traffic.shown()));
      } else if (asked.getRequestURI().startsWith(CONTROL)) {
        send(answered, service.control(asked));
      } else {
        Traffic.Size size = Traffic.of(asked); // here, because a filter takes the lineage out
        asked.setAttribute(SIZE, size);
        traffic.request(size);
        chain.doFilter(request, response);
        traffic.response(answered);
      }
    }
  }

  /** Innermost. */
  private static final class Serving extends HttpServlet {
    private static final long serialVersionUID = 1L;

    private final transient Service service;

    Serving(Service service) {
      this.service = service;
    }

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
      Answer answer;
      try {
        answer = service.answer(request, request.getInputStream().readAllBytes());
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
        answer = Answer.text(500, error.toString());
      } catch (Exception error) {
        error.printStackTrace();
        answer = Answer.text(500, error.toString());
      }
      send(response, answer);
    }
  }
}
