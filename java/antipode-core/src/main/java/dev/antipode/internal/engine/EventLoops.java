package dev.antipode.internal.engine;

import dev.antipode.BlockingCallException;
import dev.antipode.shim.CallSite;
import java.lang.reflect.Method;
import java.util.Set;

/** Whether the calling thread runs an event loop, which a blocking call would stop (BAR-31). */
final class EventLoops {
  private enum Kind {
    ORDINARY,
    NEVER_BLOCKS,
    NETTY
  }

  private static final Set<String> MARKERS = Set.of("reactor.core.scheduler.NonBlocking");
  private static final String NETTY_THREAD = "io.netty.util.concurrent.FastThreadLocalThread";

  private static final ClassValue<Kind> KINDS = new ClassValue<>() {
    @Override
    protected Kind computeValue(Class<?> type) {
      for (Class<?> each = type; each != null; each = each.getSuperclass()) {
        if (each == EngineThreads.EngineThread.class) {
          return Kind.NEVER_BLOCKS;
        }
        for (Class<?> marker : each.getInterfaces()) {
          if (MARKERS.contains(marker.getName())) {
            return Kind.NEVER_BLOCKS;
          }
        }
        if (each.getName().endsWith(NETTY_THREAD)) { // also where it is shaded
          return Kind.NETTY;
        }
      }
      return Kind.ORDINARY;
    }
  };

  private EventLoops() {}

  /** Throws where the calling thread runs an event loop; also with nothing to wait for. */
  static void refuse() {
    Thread thread = Thread.currentThread();
    Kind kind = KINDS.get(thread.getClass());
    if (kind != Kind.ORDINARY && (kind == Kind.NEVER_BLOCKS || runsNetty(thread))) {
      throw new BlockingCallException(
          "Antipode.barrier() was called on a running event loop (thread " + thread.getName()
              + ") and would stop every request on it.\n  Use: Antipode.barrierAsync(…). (site: "
              + CallSite.current() + ")");
    }
  }

  /** Netty makes such threads for pools of workers, too; it knows which executor the current one serves. */
  private static boolean runsNetty(Thread thread) {
    Class<?> type = thread.getClass();
    while (!type.getName().endsWith(NETTY_THREAD)) {
      type = type.getSuperclass();
    }
    String netty = type.getName().substring(0, type.getName().length() - "util.concurrent.FastThreadLocalThread".length());
    try {
      Class<?> executors = Class.forName(netty + "util.concurrent.internal.ThreadExecutorMap", true, type.getClassLoader());
      Method current = executors.getMethod("currentExecutor");
      Object executor = current.invoke(null);
      return executor != null && Class.forName(netty + "channel.EventLoop", false, type.getClassLoader()).isInstance(executor);
    } catch (ReflectiveOperationException | LinkageError otherVersion) {
      return false;
    }
  }
}
