package dev.antipode.internal.diagnostics.history;

import dev.antipode.Lineage;
import dev.antipode.WriteId;
import dev.antipode.internal.diagnostics.history.HistoryOrder.Line;
import dev.antipode.internal.diagnostics.history.HistoryOrder.Step;
import dev.antipode.observer.Content;
import dev.antipode.observer.ObservedStore;
import dev.antipode.observer.ReadObserver;
import dev.antipode.observer.ReadReply;
import dev.antipode.shim.ReadValue;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** One read, from before it is sent until its reply is there. What is said after the first word of its end is nothing. */
final class ReadEvent implements ReadObserver {
  private final Recorder recorder;
  private final ObservedStore store;
  private final Step step;

  ReadEvent(Recorder recorder, ObservedStore store, Step step) {
    this.recorder = recorder;
    this.store = store;
    this.step = step;
  }

  @Override
  public void returned(ReadReply reply, WriteId covers) {
    try {
      recorder.finish(step, reply.values().stream().map(each -> new Line("read", fields(each, covers))).toList(), true);
    } catch (RuntimeException error) {
      recorder.finish(step, List.of(), true);
      recorder.failed(error);
    }
  }

  private Map<String, Object> fields(ReadValue seen, WriteId covers) {
    Map<String, Object> fields = new LinkedHashMap<>();
    fields.put("store", store.name());
    if (covers != null) {
      fields.put("covers", Lineage.of(covers).serialize());
    }
    fields.put("key", HistoryKey.spelled(seen.key()));
    if (seen.version() != null) {
      fields.put("version", Lineage.of(seen.version()).serialize());
    }
    if (seen.content() == Content.NOTHING) {
      fields.put("value", null);
    } else if (seen.version() == null) {
      fields.put("reads_from", "unattributed");
    }
    return fields;
  }

  @Override
  public void failed() {
    recorder.finish(step, List.of(), true);
  }
}
