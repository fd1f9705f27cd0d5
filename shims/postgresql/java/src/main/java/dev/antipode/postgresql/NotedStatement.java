package dev.antipode.postgresql;

import dev.antipode.Key;
import dev.antipode.LineageScope;
import dev.antipode.WriteId;
import dev.antipode.history.NotedRead;
import dev.antipode.history.Recorder;
import dev.antipode.history.Seen;
import java.util.List;

/**
 * One statement that reads, from before it is sent, as a recorded history is told of it: that it reads, and no more
 * (HIST-36). Nothing here throws.
 */
final class NotedStatement {
  private final NotedRead noted;

  private NotedStatement(NotedRead noted) {
    this.noted = noted;
  }

  /**
   * A statement is about to be sent; null where no history is recorded, outside of scopes, or where it reads no data.
   *
   * @param sent its text; null where nobody knows it
   */
  static NotedStatement of(Flow flow, String sent) {
    LineageScope scope = Recorder.isOn() ? LineageScope.current() : null;
    if (scope == null || !flow.binding().refreshed().records()) {
      return null;
    }
    try {
      NotedRead noted = Statements.isNoted(sent) ? Recorder.noteRead(flow.binding().store(), scope) : null;
      return noted == null ? null : new NotedStatement(noted);
    } catch (RuntimeException error) {
      Recorder recorder = Recorder.current();
      if (recorder != null) {
        recorder.failed(error);
      }
      return null;
    }
  }

  /** Runs a call of the client's that reads, and of which nobody asks what it depends on. */
  static <T> T around(Flow flow, String sent, Flow.Call<T> call) throws Throwable {
    NotedStatement noted = of(flow, sent);
    if (noted == null) {
      return call.run();
    }
    try {
      T result = call.run();
      noted.over(null);
      return result;
    } finally {
      noted.failed();
    }
  }

  /**
   * Its result has come.
   *
   * @param covers the position that goes into lineages with it; null for none
   */
  void over(WriteId covers) {
    try {
      noted.over(List.of(new Seen(Key.EMPTY)), covers);
    } catch (RuntimeException error) {
      noted.untold(error);
    }
  }

  /** It has none; nothing where that was told before. */
  void failed() {
    noted.failed();
  }
}
