package dev.antipode.internal.diagnostics.dryrun;

import dev.antipode.Verdict;
import dev.antipode.internal.diagnostics.telemetry.Telemetry;
import dev.antipode.internal.store.Registry;
import dev.antipode.observer.FollowedBarrier;
import dev.antipode.observer.FollowedBarrier.Ending;
import dev.antipode.observer.FollowedBarrier.StoreLook;
import io.opentelemetry.api.trace.Span;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** Dry-run's records of barriers (REC-5). */
final class BarrierRecords {
  private BarrierRecords() {}

  /** Return what makes the record of a barrier when it is followed no longer; it is counted, and its trace noted, now. */
  static Consumer<Ending> begin(FollowedBarrier barrier) {
    String site = barrier.site();
    Counts.add("barriers", Telemetry.bounded(site), "");
    Map<String, Object> head = Records.head("barrier");
    head.put("site", site);
    head.put("origin", Findings.origin(barrier.scope()));
    Map<String, Object> told = new LinkedHashMap<>(head);
    told.put("reach", barrier.reach().word());
    Records.event(told, Span.current());
    if (barrier.isVacuous()) {
      Map<String, Object> vacuous = new LinkedHashMap<>(head);
      vacuous.put("kind", "vacuous");
      vacuous.put("lineage_stores", barrier.elsewhere());
      vacuous.put("registered", Registry.current().names());
      Records.event(vacuous, Span.current());
      Records.put(vacuous);
    }
    String reach = barrier.reach().word();
    return ending -> end(new LinkedHashMap<>(head), site, reach, ending);
  }

  private static void end(Map<String, Object> record, String site, String reach, Ending ending) {
    List<Map<String, Object>> stores = new ArrayList<>();
    for (StoreLook look : ending.stores()) {
      Map<String, Object> store = new LinkedHashMap<>();
      store.put("store", look.store());
      if (look.kind() != null) {
        store.put("store_kind", look.kind());
      }
      store.put("verdict", look.verdict().word());
      if (look.kind() != null) {
        store.put("servers", look.servers());
      }
      if (look.verdict() == Verdict.NOT_YET) {
        Telemetry.finding("behind", site);
        store.put("visible_after", look.visibleAfter());
      }
      stores.add(store);
    }
    record.put("reach", reach);
    record.put("satisfied", ending.isSatisfied());
    record.put("complete", ending.isComplete());
    record.put("stores", stores);
    Records.put(record);
  }
}
