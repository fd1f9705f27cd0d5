package dev.antipode;

/** The deadline passed and a write was still not visible here ({@code onTimeout(RAISE)}). */
public class BarrierTimeoutException extends BarrierException {
  private static final long serialVersionUID = 1L;

  /** An exception that says what happened, why, and what to do. */
  public BarrierTimeoutException(String code, String message, BarrierResult result) {
    super(code, message, result);
  }
}
