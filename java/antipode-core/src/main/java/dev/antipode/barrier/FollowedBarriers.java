package dev.antipode.barrier;

import dev.antipode.Verdict;
import dev.antipode.records.Counts;
import dev.antipode.records.Findings;
import dev.antipode.records.Records;
import dev.antipode.shim.Registry;
import dev.antipode.telemetry.Telemetry;
import io.opentelemetry.api.trace.Span;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/** Barriers of dry-run: nobody waits, and what was not visible is followed until it is, for 30 s at most (REC-5). */
final class FollowedBarriers {
  private FollowedBarriers() {}

  /**
   * Follows a barrier's writes with nobody waiting: when all are seen, or after 30 s, one record is written.
   *
   * @return what is looked for; empty where too much is followed already
   */
  static List<Need> follow(Plan plan, String site) {
    Counts.add("barriers", Telemetry.bounded(site), "");
    Map<String, Object> head = Records.head("barrier");
    head.put("site", site);
    head.put("origin", Findings.origin(plan.scope()));
    Map<String, Object> told = new LinkedHashMap<>(head);
    told.put("reach", plan.reach().word());
    Records.event(told, Span.current());
    if (plan.isVacuous()) {
      Map<String, Object> vacuous = new LinkedHashMap<>(head);
      vacuous.put("kind", "vacuous");
      vacuous.put("lineage_stores", plan.elsewhere());
      vacuous.put("registered", Registry.current().names());
      Records.event(vacuous, Span.current());
      Records.put(vacuous);
    }
    Followed followed = Following.follow(plan.asked(), writes -> record(plan, writes, site, head));
    if (followed == null) { // this one is not followed, and its record says that nobody knows
      record(plan, List.of(), site, head);
      return List.of();
    }
    return followed.needs();
  }

  private static void record(Plan plan, List<FollowedWrite> writes, String site, Map<String, Object> head) {
    Map<String, Object> record = new LinkedHashMap<>(head);
    record.putAll(outcome(plan, writes, site));
    Records.put(record);
  }

  private static Map<String, Object> outcome(Plan plan, List<FollowedWrite> writes, String site) {
    List<Map<String, Object>> stores = new ArrayList<>();
    boolean allSeen = true;
    for (Asked asked : plan.asked()) {
      List<FollowedWrite> own = writes.stream().filter(write -> write.server().store() == asked.store()).toList();
      boolean late = own.stream().anyMatch(write -> !write.wasThereAtOnce());
      if (late) {
        Telemetry.finding("behind", site);
      }
      boolean isSeen = !own.isEmpty() && !late;
      Map<String, Object> store = new LinkedHashMap<>();
      store.put("store", asked.store().name());
      store.put("store_kind", asked.store().kind());
      store.put("verdict", (isSeen ? Verdict.VISIBLE : Verdict.NOT_YET).word());
      store.put("servers", new TreeSet<>(own.stream().map(write -> write.server().address()).toList()));
      if (!isSeen) {
        store.put("visible_after", FollowedWrite.visibleAfter(own));
      }
      stores.add(store);
      allSeen &= isSeen;
    }
    if (plan.expected().contains(Branches.STORE)) { // nobody knows what is to come
      allSeen = false;
      stores.add(unfollowed(Branches.STORE, Verdict.UNPROVEN));
    }
    for (String name : plan.elsewhere()) {
      stores.add(unfollowed(name, Verdict.ELSEWHERE));
    }
    Map<String, Object> outcome = new LinkedHashMap<>();
    outcome.put("reach", plan.reach().word());
    outcome.put("satisfied", allSeen);
    outcome.put(
        "complete", allSeen && plan.elsewhere().isEmpty() && plan.lineage().isComplete(plan.askedNames()));
    outcome.put("stores", stores);
    return outcome;
  }

  private static Map<String, Object> unfollowed(String name, Verdict verdict) {
    Map<String, Object> store = new LinkedHashMap<>();
    store.put("store", name);
    store.put("verdict", verdict.word());
    return store;
  }
}
