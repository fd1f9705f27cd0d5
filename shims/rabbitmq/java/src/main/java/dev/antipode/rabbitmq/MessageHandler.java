package dev.antipode.rabbitmq;

/**
 * What is done with one message, in its scope.
 *
 * @param <E> what it throws
 */
@FunctionalInterface
public interface MessageHandler<E extends Exception> {
  /** Handles the message. */
  void run() throws E;
}
