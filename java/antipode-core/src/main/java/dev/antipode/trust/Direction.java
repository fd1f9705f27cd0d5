package dev.antipode.trust;

import java.util.Locale;

/** Which way a lineage was going; the attribute of metrics (OBS-3). */
public enum Direction {
  /** With a request, to us. */
  REQUEST_IN,
  /** With a request of ours. */
  REQUEST_OUT,
  /** With a response, to us. */
  RESPONSE_IN,
  /** With a response of ours. */
  RESPONSE_OUT,
  /** With a message or value that was read. */
  MESSAGE_IN,
  /** With a message or value that is written. */
  MESSAGE_OUT;

  /** The same word in metrics and all languages: {@code request_in}. */
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** For a person: {@code request in}. */
  String words() {
    return word().replace('_', ' ');
  }

  boolean isOutward() {
    return this == REQUEST_OUT || this == RESPONSE_OUT || this == MESSAGE_OUT;
  }

  @Override
  public String toString() {
    return word();
  }
}
