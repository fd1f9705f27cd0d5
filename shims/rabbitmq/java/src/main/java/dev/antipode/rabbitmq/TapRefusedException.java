package dev.antipode.rabbitmq;

/** The broker is there and will not let the tap be read: no such queue, no right, no stream. */
class TapRefusedException extends Exception {
  private static final long serialVersionUID = 1L;

  TapRefusedException(String message) {
    super(message);
  }
}
