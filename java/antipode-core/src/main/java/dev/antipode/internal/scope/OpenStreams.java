package dev.antipode.internal.scope;

import dev.antipode.Gap;
import java.util.List;
import java.util.stream.Stream;

/** The response streams of a scope with a message in hand whose lineage comes at their end (PROP-28), each told by identity. */
public final class OpenStreams {
  private volatile List<Gap> open = List.of(); // copied when it changes: it is looked at more often

  /** A message of this stream is in hand. */
  public synchronized void add(Gap stream) {
    if (open.stream().noneMatch(each -> each == stream)) {
      open = Stream.concat(open.stream(), Stream.of(stream)).toList();
    }
  }

  /** The end of this stream came. */
  public synchronized void remove(Gap stream) {
    open = open.stream().filter(each -> each != stream).toList();
  }

  /** The application vouches for all of them. */
  public synchronized void clear() {
    open = List.of();
  }

  /** Return those whose end has not come. */
  public List<Gap> open() {
    return open;
  }
}
