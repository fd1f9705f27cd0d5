package dev.antipode.http;

import dev.antipode.propagation.Inbound;
import io.opentelemetry.context.Scope;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import java.io.IOException;

/** Runs the application's listener in its request's scope: containers call it in threads of their own (SCOPE-28). */
record InboundListener(AsyncListener inner, Inbound inbound) implements AsyncListener {
  @Override
  public void onComplete(AsyncEvent event) throws IOException {
    try (Scope current = inbound.makeCurrent()) {
      inner.onComplete(event);
    }
  }

  @Override
  public void onTimeout(AsyncEvent event) throws IOException {
    try (Scope current = inbound.makeCurrent()) {
      inner.onTimeout(event);
    }
  }

  @Override
  public void onError(AsyncEvent event) throws IOException {
    try (Scope current = inbound.makeCurrent()) {
      inner.onError(event);
    }
  }

  @Override
  public void onStartAsync(AsyncEvent event) throws IOException {
    try (Scope current = inbound.makeCurrent()) {
      inner.onStartAsync(event);
    }
  }
}
