package dev.antipode;

/** For the consumer's wrapper: this message goes back to the queue after {@code redeliver_delay} (BAR-45). */
public class RedeliverException extends BarrierException {
  private static final long serialVersionUID = 1L;

  /** An exception that says what happened, and which failure of a barrier, whose code it has, brought it about. */
  public RedeliverException(String message, BarrierResult result, Throwable cause) {
    super(cause instanceof AntipodeException failure ? failure.code() : "AP201", message, result, cause);
  }
}
