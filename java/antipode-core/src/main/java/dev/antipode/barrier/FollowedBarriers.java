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
    boolean unjudged = plan.leavesUnjudged(); // by now: the scope goes on
    Followed followed = Following.follow(plan.asked(), writes -> record(plan, writes, site, head, unjudged));
    if (followed == null) { // this one is not followed, and its record says that nobody knows
      record(plan, List.of(), site, head, unjudged);
      return List.of();
    }
    BarrierLooks.keep(plan, site);
    return followed.needs();
  }

  private static void record(
      Plan plan, List<FollowedWrite> writes, String site, Map<String, Object> head, boolean unjudged) {
    Map<String, Object> record = new LinkedHashMap<>(head);
    record.putAll(outcome(plan, writes, site, unjudged));
    Records.put(record);
  }

  /** What a barrier would have said without waiting (REC-5). */
  private static Map<String, Object> outcome(Plan plan, List<FollowedWrite> writes, String site, boolean unjudged) {
    List<Map<String, Object>> stores = new ArrayList<>();
    boolean allSeen = plan.expected().isEmpty();
    for (Asked asked : plan.asked()) {
      List<FollowedWrite> own = writes.stream().filter(write -> write.server().store() == asked.store()).toList();
      Verdict verdict = verdict(asked, own);
      Map<String, Object> store = new LinkedHashMap<>();
      store.put("store", asked.store().name());
      store.put("store_kind", asked.store().kind());
      store.put("verdict", verdict.word());
      store.put("servers", new TreeSet<>(own.stream().map(write -> write.server().address()).toList()));
      if (verdict == Verdict.NOT_YET) {
        Telemetry.finding("behind", site);
        store.put("visible_after", FollowedWrite.visibleAfter(judged(own)));
      }
      stores.add(store);
      allSeen &= verdict == Verdict.VISIBLE;
    }
    for (String name : plan.expected()) { // open branches, too: nobody knows what is to come
      stores.add(unfollowed(name, Verdict.UNPROVEN));
    }
    for (String name : plan.elsewhere()) {
      stores.add(unfollowed(name, Verdict.ELSEWHERE));
    }
    boolean leftOut = writes.stream().anyMatch(FollowedWrite::isLeftOut);
    Map<String, Object> outcome = new LinkedHashMap<>();
    outcome.put("reach", plan.reach().word());
    outcome.put("satisfied", allSeen);
    outcome.put("complete", allSeen && !unjudged && !leftOut);
    outcome.put("stores", stores);
    return outcome;
  }

  /** What a barrier would have found of one store; a server that does not answer is left out, as by a barrier. */
  private static Verdict verdict(Asked asked, List<FollowedWrite> writes) {
    List<FollowedWrite> judged = judged(writes);
    if (judged.stream().anyMatch(FollowedWrite::isLate)) {
      return Verdict.NOT_YET;
    }
    if (judged.size() < writes.size() && Judgement.failsWithoutReplica(asked)) {
      return Verdict.UNPROVEN;
    }
    boolean seen = !judged.isEmpty() && judged.stream().allMatch(FollowedWrite::wasThereAtOnce);
    return seen ? Verdict.VISIBLE : Verdict.UNPROVEN;
  }

  private static List<FollowedWrite> judged(List<FollowedWrite> writes) {
    return writes.stream().filter(write -> !write.isLeftOut()).toList();
  }

  private static Map<String, Object> unfollowed(String name, Verdict verdict) {
    Map<String, Object> store = new LinkedHashMap<>();
    store.put("store", name);
    store.put("verdict", verdict.word());
    return store;
  }
}
