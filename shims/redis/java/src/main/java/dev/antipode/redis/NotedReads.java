package dev.antipode.redis;

import dev.antipode.LineageScope;
import dev.antipode.WriteId;
import dev.antipode.history.NotedRead;
import dev.antipode.history.Recorder;
import dev.antipode.history.Seen;
import java.util.ArrayList;
import java.util.List;

/** One read, or the reads of one batch, as a recorded history is told of them. */
final class NotedReads {
  private final NotedRead noted;
  private final List<Seen> seen = new ArrayList<>();

  private NotedReads(NotedRead noted) {
    this.noted = noted;
  }

  /** A read is about to be sent; null where no history is recorded, or outside of scopes. */
  static NotedReads of(Binding binding) {
    NotedRead noted = Recorder.isOn() ? Recorder.noteRead(binding.store(), LineageScope.current()) : null;
    return noted == null ? null : new NotedReads(noted);
  }

  /** A read was answered so, as the application gets it; one that was refused has read nothing. */
  synchronized void saw(Words command, Object reply) {
    if (reply instanceof Exception) {
      return;
    }
    try {
      seen.addAll(Noting.seen(command, reply).stream().map(each -> new Seen(each.key(), each.content())).toList());
    } catch (RuntimeException error) {
      noted.untold(error);
    }
  }

  /** The application gets the replies; with this position they go into lineages, null for none. */
  synchronized void over(WriteId covers) {
    noted.over(seen, covers);
  }

  /** There is no reply; nothing where it was over before. */
  void failed() {
    noted.failed();
  }
}
