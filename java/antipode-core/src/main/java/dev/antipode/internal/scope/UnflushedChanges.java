package dev.antipode.internal.scope;

import dev.antipode.LineageScope;
import dev.antipode.shim.PendingWrite;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * What is about to be written and no client has seen yet: an object-relational mapper sends its statements at the end of the
 * transaction (SCOPE-27). Whoever knows such a mapper is asked whenever a scope's lineage is handed out or waited for.
 */
public final class UnflushedChanges {
  private static volatile List<Consumer<LineageScope>> sources = List.of();

  private UnflushedChanges() {}

  /**
   * From now on this source is asked, in the thread whose scope hands its lineage out.
   *
   * @param source makes what its thread is about to write pending in the scope ({@link LineageScope#begin}); may not throw
   */
  public static synchronized void ask(Consumer<LineageScope> source) {
    sources = Stream.concat(sources.stream(), Stream.of(source)).toList();
  }

  /** It is asked no more. */
  public static synchronized void forget(Consumer<LineageScope> source) {
    sources = sources.stream().filter(each -> each != source).toList();
  }

  /**
   * What is in doubt for a scope's own barrier (BAR-56).
   *
   * @return the scope's writes in flight, with those that its thread is about to make
   */
  public static List<PendingWrite> inDoubt(LineageScope scope) {
    look(scope);
    return scope.pending();
  }

  /** The lineage of a scope is handed out. */
  public static void look(LineageScope scope) {
    List<Consumer<LineageScope>> all = sources;
    if (!all.isEmpty() && LineageScope.current() == scope) {
      all.forEach(source -> source.accept(scope));
    }
  }
}
