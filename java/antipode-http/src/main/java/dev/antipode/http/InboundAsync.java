package dev.antipode.http;

import dev.antipode.Antipode;
import dev.antipode.propagation.Inbound;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;

/**
 * An asynchronous request that sends its lineage before it completes: the container sends the header then. Who listens to it,
 * to its time-out for instance, does so in the request's scope.
 */
record InboundAsync(AsyncContext inner, InboundResponse response) implements AsyncContext {
  @Override
  public void complete() {
    response.sendLineage();
    inner.complete();
  }

  @Override
  public ServletRequest getRequest() {
    return inner.getRequest();
  }

  @Override
  public ServletResponse getResponse() {
    return inner.getResponse();
  }

  @Override
  public boolean hasOriginalRequestAndResponse() {
    return inner.hasOriginalRequestAndResponse();
  }

  @Override
  public void dispatch() {
    inner.dispatch();
  }

  @Override
  public void dispatch(String path) {
    inner.dispatch(path);
  }

  @Override
  public void dispatch(ServletContext context, String path) {
    inner.dispatch(context, path);
  }

  @Override
  public void start(Runnable run) {
    inner.start(Antipode.carry(run));
  }

  @Override
  public void addListener(AsyncListener listener) {
    inner.addListener(inScope(listener));
  }

  @Override
  public void addListener(AsyncListener listener, ServletRequest request, ServletResponse given) {
    inner.addListener(inScope(listener), request, given);
  }

  private static AsyncListener inScope(AsyncListener listener) {
    Inbound inbound = Inbound.current();
    return inbound == null ? listener : new InboundListener(listener, inbound);
  }

  @Override
  public <T extends AsyncListener> T createListener(Class<T> kind) throws ServletException {
    return inner.createListener(kind);
  }

  @Override
  public void setTimeout(long timeout) {
    inner.setTimeout(timeout);
  }

  @Override
  public long getTimeout() {
    return inner.getTimeout();
  }
}
