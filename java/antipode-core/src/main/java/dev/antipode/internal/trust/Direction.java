package dev.antipode.internal.trust;

/** Which way a lineage was going; the attribute of metrics (OBS-3). */
public enum Direction {
  /** With a request, to us. */
  REQUEST_IN("request_in", Purpose.REQUEST),
  /** With a request of ours. */
  REQUEST_OUT("request_out", Purpose.REQUEST),
  /** With a response, to us. */
  RESPONSE_IN("response_in", Purpose.RESPONSE),
  /** With a response of ours. */
  RESPONSE_OUT("response_out", Purpose.RESPONSE),
  /** With a message that was received. */
  MESSAGE_IN("message_in", Purpose.MESSAGE),
  /** With a message that is sent. */
  MESSAGE_OUT("message_out", Purpose.MESSAGE),
  /** Beside a value that was read; metrics count it as a message. */
  VALUE_IN("message_in", Purpose.VALUE),
  /** Beside a value that is written; likewise. */
  VALUE_OUT("message_out", Purpose.VALUE);

  private final String word;
  private final Purpose purpose;

  Direction(String word, Purpose purpose) {
    this.word = word;
    this.purpose = purpose;
  }

  /** The same word in metrics and all languages: {@code request_in}. */
  public String word() {
    return word;
  }

  /** Return what its seals are for. */
  public Purpose purpose() {
    return purpose;
  }

  /** For a person: {@code request in}. */
  String words() {
    return word.replace('_', ' ');
  }

  boolean isOutward() {
    return word.endsWith("_out");
  }

  @Override
  public String toString() {
    return word;
  }
}
