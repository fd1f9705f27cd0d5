package dev.antipode.spring;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A task of a scheduler's (SCOPE-28). Its first run is in the scope of who schedules it; behind the end of that in one of its
 * own, which depends on it. Each further run is of a timer alone, and in one of its own that depends on nothing.
 */
final class ScheduledTask implements Runnable {
  private final Runnable task;
  private final AtomicBoolean hasRun = new AtomicBoolean();
  private volatile LineageScope scheduling; // null where it is nobody's, and behind the first run
  private volatile Runnable carried;

  ScheduledTask(Runnable task) {
    this.task = task;
    this.scheduling = LineageScope.current();
    this.carried = scheduling == null ? null : Antipode.carry(task);
  }

  @Override
  public void run() {
    LineageScope scope = scheduling;
    Runnable first = carried;
    boolean isFirst = hasRun.compareAndSet(false, true) && scope != null;
    scheduling = null; // a timer may run for ever, and that scope shall not live as long
    carried = null;
    if (isFirst && !scope.isClosed()) {
      first.run();
      return;
    }
    LineageScope around = LineageScope.current(); // where the scheduler handles the run's error
    try (LineageScope own = Antipode.scope(isFirst ? scope.lineage() : Lineage.EMPTY)) {
      try {
        task.run();
      } catch (Throwable error) {
        if (around != null) {
          around.transfer(own.lineage());
        }
        throw error;
      }
    }
  }
}
