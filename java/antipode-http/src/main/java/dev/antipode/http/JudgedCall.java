package dev.antipode.http;

import java.util.Objects;

/** A call that the interceptor has judged, on its thread, until its response is there. */
final class JudgedCall implements AutoCloseable {
  private static final ThreadLocal<JudgedCall> CURRENT = new ThreadLocal<>();

  private final JudgedCall outer = CURRENT.get();
  private final String asked;
  private String redirected;

  /** Begins; {@link #close} ends it. */
  JudgedCall(String host) {
    this.asked = host;
    CURRENT.set(this);
  }

  /** The call of this thread, or null. */
  static JudgedCall current() {
    return CURRENT.get();
  }

  /** The host that was called last: its answer is judged by this one. */
  String host() {
    return Objects.requireNonNullElse(redirected, asked);
  }

  /** A redirect leads there; null: the call begins, at the host that was asked for. */
  void leadsTo(String host) {
    redirected = host;
  }

  @Override
  public void close() {
    if (outer == null) {
      CURRENT.remove();
    } else {
      CURRENT.set(outer);
    }
  }
}
