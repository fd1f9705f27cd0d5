package dev.antipode;

import java.util.List;
import java.util.stream.Stream;

/** The response streams of a scope with a message in hand whose lineage comes at their end (PROP-28), each told by identity. */
final class OpenStreams {
  private volatile List<Gap> open = List.of(); // copied when it changes: it is looked at more often

  synchronized void add(Gap stream) {
    if (open.stream().noneMatch(each -> each == stream)) {
      open = Stream.concat(open.stream(), Stream.of(stream)).toList();
    }
  }

  synchronized void remove(Gap stream) {
    open = open.stream().filter(each -> each != stream).toList();
  }

  synchronized void clear() {
    open = List.of();
  }

  List<Gap> open() {
    return open;
  }
}
