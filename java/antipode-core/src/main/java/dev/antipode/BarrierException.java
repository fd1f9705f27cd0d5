package dev.antipode;

/** A barrier ended without what was asked of it; {@link #result} says what it proved, per store (BAR-43). */
public class BarrierException extends AntipodeException {
  private static final long serialVersionUID = 1L;

  private final transient BarrierResult result;

  /** An exception that says what happened, why, and what to do. */
  public BarrierException(String code, String message, BarrierResult result) {
    super(code, message);
    this.result = result;
  }

  /** An exception that another one brought about. */
  public BarrierException(String code, String message, BarrierResult result, Throwable cause) {
    super(code, message, cause);
    this.result = result;
  }

  /** What the barrier proved until then; null in an exception that was sent to another process. */
  public BarrierResult result() {
    return result;
  }
}
