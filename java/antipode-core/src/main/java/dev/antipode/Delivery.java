package dev.antipode;

/**
 * The message that a scope was opened for; the policy {@link Policy#REDELIVER} of a barrier goes back through it.
 *
 * @param canRedeliver whether the consumer can give the message back
 * @param detail why not, where it cannot
 */
public record Delivery(boolean canRedeliver, String detail) {}
