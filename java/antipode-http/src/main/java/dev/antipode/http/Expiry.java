package dev.antipode.http;

import dev.antipode.propagation.Inbound;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;

/** Hears of the time-out of an asynchronous request before the application's listeners, which may answer for it (PROP-13). */
record Expiry(Inbound inbound) implements AsyncListener {
  @Override
  public void onTimeout(AsyncEvent event) {
    inbound.expire();
  }

  @Override
  public void onComplete(AsyncEvent event) {
    // the filter ends the scope, behind the application's listeners
  }

  @Override
  public void onError(AsyncEvent event) {
    // `onComplete` follows
  }

  @Override
  public void onStartAsync(AsyncEvent event) {
    // it is added each time
  }
}
