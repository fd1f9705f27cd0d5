package dev.antipode;

/**
 * The message that a scope was opened for; the policy {@link Policy#REDELIVER} of a barrier goes back through it. Shims of
 * queues make them, and say when a message can go back no more.
 */
public class Delivery {
  private volatile boolean canRedeliver;
  private volatile String detail;

  /**
   * A message that came in.
   *
   * @param canRedeliver whether the consumer can give the message back
   * @param detail why not, where it cannot
   */
  public Delivery(boolean canRedeliver, String detail) {
    this.canRedeliver = canRedeliver;
    this.detail = detail;
  }

  /** Whether the consumer can give the message back. */
  public final boolean canRedeliver() {
    return canRedeliver;
  }

  /** Why not, where it cannot. */
  public final String detail() {
    return detail;
  }

  /** From now on it cannot go back, for this reason: it was acknowledged, or its scope has ended. */
  public final void settle(String why) {
    if (canRedeliver) {
      detail = why;
      canRedeliver = false;
    }
  }
}
