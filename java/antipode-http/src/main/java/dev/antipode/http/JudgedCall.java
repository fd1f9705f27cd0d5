package dev.antipode.http;

import java.util.Objects;

/** A call of an interceptor's, on its thread, until its response is there. */
final class JudgedCall implements AutoCloseable {
  private static final ThreadLocal<JudgedCall> CURRENT = new ThreadLocal<>();

  private final JudgedCall outer = CURRENT.get();
  private final String asked;
  private String reached;

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
    return Objects.requireNonNullElse(reached, asked);
  }

  /** A factory of ours calls this host now, and judges it first. */
  void leadsTo(String host) {
    for (JudgedCall call = this; call != null; call = call.outer) {
      call.reached = host;
    }
  }

  /** Return whether a factory of ours has made the call: it judges each host, and nothing beneath it follows redirects. */
  boolean isJudged() {
    return reached != null;
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
