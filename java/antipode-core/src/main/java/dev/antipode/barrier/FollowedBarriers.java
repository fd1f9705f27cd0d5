package dev.antipode.barrier;

import dev.antipode.LineageScope;
import dev.antipode.Verdict;
import dev.antipode.records.Records;
import dev.antipode.shim.Registry;
import dev.antipode.telemetry.Telemetry;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** Barriers of dry-run: nobody waits, and what was not visible is followed until it is, for 30 s at most (REC-5). */
public final class FollowedBarriers {
  private static final int MOST_FOLLOWED = 1000;
  private static final Set<Followed> FOLLOWED = ConcurrentHashMap.newKeySet();
  private static volatile long followFor = TimeUnit.SECONDS.toNanos(30);

  static {
    Records.atExit(FollowedBarriers::end);
  }

  /** One barrier that is followed. */
  private static final class Followed {
    private final Plan plan;
    private final String site;
    private final Map<String, Object> head;
    private final Group group = new Group(followFor, this::finished, true);

    private Followed(Plan plan, String site, Map<String, Object> head) {
      this.plan = plan;
      this.site = site;
      this.head = head;
    }

    private void finished() {
      if (FOLLOWED.remove(this)) {
        record();
      }
    }

    private void record() {
      Map<String, Object> record = new LinkedHashMap<>(head);
      record.putAll(outcome(plan, group, site));
      Records.put(record);
    }

    private void giveUp() {
      Waiting.giveUp(group);
      finished();
    }
  }

  private FollowedBarriers() {}

  /** Parks a barrier's writes with nobody waiting: when all are seen, or after 30 s, one record is written. */
  static Group follow(Plan plan, String site) {
    Map<String, Object> head = Records.head("barrier");
    head.put("site", site);
    head.put("origin", origin(plan.scope()));
    if (plan.isVacuous()) {
      Map<String, Object> vacuous = new LinkedHashMap<>(head);
      vacuous.put("kind", "vacuous");
      vacuous.put("lineage_stores", plan.elsewhere());
      vacuous.put("registered", Registry.current().names());
      Records.put(vacuous);
    }
    Followed followed = new Followed(plan, site, head);
    if (FOLLOWED.size() >= MOST_FOLLOWED) { // this one is not followed, and its record says that nobody knows
      followed.record();
      return followed.group;
    }
    FOLLOWED.add(followed);
    if (Waiting.park(followed.group, plan.asked())) {
      EngineThreads.TIMER.schedule(followed::giveUp, followFor, TimeUnit.NANOSECONDS);
    } else {
      followed.finished();
    }
    return followed.group;
  }

  private static void end() {
    List.copyOf(FOLLOWED).forEach(Followed::giveUp);
  }

  /** Follows nothing any more, and records nothing of it (tests: what one left is no record of the next). */
  public static void forget() {
    for (Followed followed : List.copyOf(FOLLOWED)) {
      FOLLOWED.remove(followed);
      Waiting.giveUp(followed.group);
    }
  }

  /** Where a lineage came from (REC-7); asked while the request runs, which knows its route by now. */
  private static Map<String, Object> origin(LineageScope scope) {
    Map<String, Object> origin = new LinkedHashMap<>();
    if (scope == null) {
      origin.put("scope", "task");
      return origin;
    }
    origin.put("scope", scope.kind().word());
    origin.put("opened_by", scope.openedBy());
    if (!scope.queue().isEmpty()) {
      origin.put("store", scope.queue());
    }
    return origin;
  }

  private static Map<String, Object> outcome(Plan plan, Group group, String site) {
    List<Map<String, Object>> stores = new ArrayList<>();
    boolean allSeen = true;
    for (Asked asked : plan.asked()) {
      List<Need> own = group.needs.stream().filter(need -> need.server.store() == asked.store()).toList();
      boolean late = own.stream().anyMatch(need -> need.late || !need.isVisible());
      if (late) {
        Telemetry.finding("behind", site);
      }
      boolean isSeen = !own.isEmpty() && !late;
      Map<String, Object> store = new LinkedHashMap<>();
      store.put("store", asked.store().name());
      store.put("store_kind", asked.store().kind());
      store.put("verdict", (isSeen ? Verdict.VISIBLE : Verdict.NOT_YET).word());
      store.put("servers", new TreeSet<>(own.stream().map(need -> need.server.address()).toList()));
      if (!isSeen) {
        boolean followed = !own.isEmpty() && own.stream().allMatch(need -> need.isDone() && need.isVisible());
        store.put("visible_after", followed ? Math.round(Judgement.late(own) / 1e3) / 1e6 : null);
      }
      stores.add(store);
      allSeen &= isSeen;
    }
    if (plan.expected().contains(Branches.STORE)) { // nobody knows what is to come
      allSeen = false;
      Map<String, Object> branches = new LinkedHashMap<>();
      branches.put("store", Branches.STORE);
      branches.put("verdict", Verdict.UNPROVEN.word());
      stores.add(branches);
    }
    for (String name : plan.elsewhere()) {
      Map<String, Object> store = new LinkedHashMap<>();
      store.put("store", name);
      store.put("verdict", Verdict.ELSEWHERE.word());
      stores.add(store);
    }
    Map<String, Object> outcome = new LinkedHashMap<>();
    outcome.put("reach", plan.reach().word());
    outcome.put("satisfied", allSeen);
    outcome.put(
        "complete", allSeen && plan.elsewhere().isEmpty() && plan.lineage().isComplete(plan.askedNames()));
    outcome.put("stores", stores);
    return outcome;
  }

  /** Sets how long a write is followed; returns what it was, in nanoseconds (tests). */
  static long followFor(long nanos) {
    long before = followFor;
    followFor = nanos;
    return before;
  }
}
