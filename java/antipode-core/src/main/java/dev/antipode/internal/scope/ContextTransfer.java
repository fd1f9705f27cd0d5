package dev.antipode.internal.scope;

import dev.antipode.LineageScope;
import dev.antipode.ScopeKind;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Takes the Context of the caller along to where the work runs, and puts that thread's own back (SCOPE-12). A detached
 * scope stays open until each piece of work that carries it has run once.
 */
public final class ContextTransfer {
  private final Context context = Context.current();
  private final LineageScope scope = LineageScope.in(context);
  private final AtomicBoolean holding = new AtomicBoolean();

  /** Capture the Context of the caller, and hold its scope where that is a detached one. */
  public ContextTransfer() {
    if (scope != null) { // here, in the transaction's own thread: where the work runs nobody sees that one (SCOPE-27)
      UnflushedChanges.look(scope);
    }
    if (scope != null && scope.kind() == ScopeKind.DETACHED) {
      holding.set(true);
      ScopeAccess.hold(scope);
    }
  }

  /** Return the work, to run in the Context that is current now. */
  public static Runnable of(Runnable work) {
    ContextTransfer carrying = new ContextTransfer();
    return () -> {
      try (var in = carrying.enter()) {
        work.run();
      }
    };
  }

  /** Runs what follows in the carried Context; closing ends that. */
  public AutoCloseableQuietly enter() {
    Scope current = context.makeCurrent();
    return () -> {
      current.close();
      release();
    };
  }

  /** The work will not run, or has run. */
  void release() {
    if (holding.compareAndSet(true, false)) {
      ScopeAccess.release(scope);
    }
  }

  /** A block's end that throws nothing. */
  public interface AutoCloseableQuietly extends AutoCloseable {
    @Override
    void close();
  }
}
