package dev.antipode.http;

import dev.antipode.Antipode;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;

/** An asynchronous request that sends its lineage before it completes: the container sends the header then. */
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
    inner.addListener(listener);
  }

  @Override
  public void addListener(AsyncListener listener, ServletRequest request, ServletResponse given) {
    inner.addListener(listener, request, given);
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
