package dev.antipode.spring;

import dev.antipode.http.AntipodeFilter;
import dev.antipode.propagation.Caller;
import dev.antipode.propagation.Header;
import jakarta.servlet.ServletException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.catalina.connector.Request;
import org.apache.catalina.connector.Response;
import org.apache.catalina.valves.ValveBase;

/** Keeps peer and forwarding headers as Tomcat received them, before another valve changes them (TRUST-33). */
final class ReceivedCaller extends ValveBase {
  ReceivedCaller() {
    super(true); // asynchronous requests pass
  }

  @Override
  public void invoke(Request request, Response response) throws IOException, ServletException {
    List<Header> lines = new ArrayList<>();
    for (String name : List.of("X-Forwarded-For", "Forwarded")) {
      Collections.list(request.getHeaders(name)).forEach(value -> lines.add(new Header(name, value)));
    }
    request.setAttribute(AntipodeFilter.RECEIVED, Caller.of(request.getPeerAddr(), lines));
    getNext().invoke(request, response);
  }
}
