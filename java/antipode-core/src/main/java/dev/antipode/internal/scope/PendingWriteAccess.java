package dev.antipode.internal.scope;

import dev.antipode.Lineage;
import dev.antipode.shim.PendingWrite;
import java.util.function.BiConsumer;
import java.util.function.BiPredicate;

/** What {@link PendingWrite} gives to the scope that it is in, and keeps from shims. */
public final class PendingWriteAccess {
  private static volatile BiConsumer<PendingWrite, Lineage> sentWith;
  private static volatile BiPredicate<PendingWrite, Thread> isOf;

  private PendingWriteAccess() {}

  /** Called by {@link PendingWrite} once, before there is any. */
  public static void give(BiConsumer<PendingWrite, Lineage> noting, BiPredicate<PendingWrite, Thread> asking) {
    sentWith = noting;
    isOf = asking;
  }

  /** Note the lineage of its scope when it was sent. */
  static void sentWith(PendingWrite write, Lineage lineage) {
    sentWith.accept(write, lineage);
  }

  /** Return whether it is a thread's own, not committed yet. */
  static boolean isOf(PendingWrite write, Thread thread) {
    return isOf.test(write, thread);
  }
}
