package dev.antipode.internal.diagnostics.dryrun;

import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.diagnostics.dryrun.Counts.CounterKey;
import java.util.List;
import java.util.Map;

/** What was counted since the last summary (REC-16, REC-19). */
final class Summaries {
  // Under the lock of this: what the last summary had counted, and when it was written.
  private Map<CounterKey, Long> counted = Map.of();
  private double since = Records.now();

  /** A summary of what was counted since the last one; none where nothing was. */
  synchronized List<Map<String, Object>> due() {
    Map<CounterKey, Long> now = Counts.snapshot();
    List<Map<String, Object>> more = Counts.between(counted, now);
    if (more.isEmpty()) {
      return List.of();
    }
    Map<String, Object> record = Records.headOfNoTrace("summary");
    record.put("since", since);
    record.put("sample", ProcessSettings.inForce().sample());
    record.put("counts", more);
    counted = now;
    since = (double) record.get("time");
    return List.of(record);
  }

  synchronized void reset() {
    Counts.reset();
    counted = Map.of();
    since = Records.now();
  }
}
