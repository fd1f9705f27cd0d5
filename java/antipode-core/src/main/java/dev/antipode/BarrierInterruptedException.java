package dev.antipode;

/** The thread was interrupted while a barrier waited; its interrupt flag is set again. */
public class BarrierInterruptedException extends AntipodeException {
  private static final long serialVersionUID = 1L;

  /** An exception that the interrupt brought about. */
  public BarrierInterruptedException(String message, Throwable cause) {
    super("AP299", message, cause);
  }
}
