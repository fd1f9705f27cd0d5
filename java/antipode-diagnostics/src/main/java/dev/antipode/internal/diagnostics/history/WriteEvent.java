package dev.antipode.internal.diagnostics.history;

import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.WriteId;
import dev.antipode.internal.diagnostics.history.HistoryOrder.Line;
import dev.antipode.internal.diagnostics.history.HistoryOrder.Step;
import dev.antipode.observer.KeyChange;
import dev.antipode.observer.ObservedStore;
import dev.antipode.observer.WriteObserver;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** One write, from before it is sent until it is known what became of it. */
final class WriteEvent implements WriteObserver {
  private final Recorder recorder;
  private final ObservedStore store;
  private final Step step;
  private volatile List<KeyChange> changed; // null: nobody knows

  WriteEvent(Recorder recorder, ObservedStore store, Step step) {
    this.recorder = recorder;
    this.store = store;
    this.step = step;
  }

  @Override
  public void changes(List<KeyChange> keys) {
    changed = keys;
  }

  @Override
  public void done(WriteId id, Key key) {
    finish(id, key, true);
  }

  @Override
  public void unknown(Key key) {
    List<KeyChange> known = changed;
    if (known != null && known.isEmpty()) {
      notDone();
    } else {
      finish(null, key, false);
    }
  }

  @Override
  public void notDone() {
    recorder.finish(step, List.of(), true);
  }

  private void finish(WriteId id, Key key, boolean certain) {
    try {
      recorder.finish(step, lines(id, key, certain), certain);
    } catch (RuntimeException error) {
      recorder.finish(step, List.of(), true);
      recorder.failed(error);
    }
  }

  private List<Line> lines(WriteId id, Key key, boolean certain) {
    List<KeyChange> keys = changed;
    boolean ofPositions = store.givesPositions();
    if (keys == null && !key.isEmpty() && !ofPositions) {
      keys = List.of(new KeyChange(key));
    }
    List<Line> lines = new ArrayList<>();
    if (keys == null) {
      lines.add(line(id, certain, Map.of("key", "", "any_key", true)));
    } else if (keys.isEmpty()) {
      lines.add(line(id, certain, Map.of("key", "", "nothing", true)));
    } else {
      keys.forEach(each -> lines.add(line(id, certain, fields(each))));
    }
    return lines;
  }

  private Line line(WriteId id, boolean certain, Map<String, Object> what) {
    Map<String, Object> fields = new LinkedHashMap<>();
    if (!certain) {
      fields.put("outcome", "unknown");
    }
    fields.put("store", store.name());
    if (id != null) {
      fields.put("identifier", Lineage.of(id).serialize());
    }
    fields.putAll(what);
    return new Line("write", fields);
  }

  private static Map<String, Object> fields(KeyChange each) {
    Map<String, Object> fields = new LinkedHashMap<>();
    fields.put("key", HistoryKey.spelled(each.key()));
    switch (each.content()) {
      case SOMETHING -> fields.put("there", true);
      case NOTHING -> fields.put("value", null);
      default -> {}
    }
    if (each.expires()) {
      fields.put("expires", true);
    }
    return fields;
  }

  @Override
  public void untold(RuntimeException error) {
    changed = null;
    recorder.failed(error);
  }
}
