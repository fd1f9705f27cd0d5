package dev.antipode;

/** {@code requireComplete}, and something was left unjudged: a store elsewhere, a server, a loss. */
public class BarrierIncompleteException extends BarrierException {
  private static final long serialVersionUID = 1L;

  /** An exception that says what happened, why, and what to do. */
  public BarrierIncompleteException(String code, String message, BarrierResult result) {
    super(code, message, result);
  }
}
