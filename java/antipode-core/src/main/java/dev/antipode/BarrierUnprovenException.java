package dev.antipode;

/** No proof is possible that a write is visible here, however long one waits. */
public class BarrierUnprovenException extends BarrierException {
  private static final long serialVersionUID = 1L;

  /** An exception that says what happened, why, and what to do. */
  public BarrierUnprovenException(String code, String message, BarrierResult result) {
    super(code, message, result);
  }
}
