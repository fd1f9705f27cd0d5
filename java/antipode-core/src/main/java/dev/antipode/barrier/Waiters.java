package dev.antipode.barrier;

import dev.antipode.Ordered;
import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.shim.Visibility;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * Who waits at one server, what it is to be asked for them, and what an answer settles (spec BAR, EPOCH). Nothing here
 * asks or sleeps: {@link ServerEngine} does, and holds its lock round every call.
 */
final class Waiters {
  private static final int MOST_OBJECTS = 200;
  private static final int FAILED_IN_A_ROW = 5;

  /** The least position of an epoch that was given up, since when it was wanted: one prober goes on for it. */
  record Probe(long counter, long since, WriteId writeId) {}

  private final long linger;
  private int live;
  private int followed; // of them: nobody waits for these
  private List<Need> looks = new ArrayList<>();
  private final Map<String, Probe> probes = new HashMap<>();
  private final Map<String, PositionQueue> ordered = new HashMap<>();
  private final Map<WriteId, List<Need>> others = new LinkedHashMap<>();
  private int rounds;
  private final Map<String, Long> unknown = new HashMap<>();
  private int timeoutsInARow;

  /** {@code linger}: how long a server is asked on after the last barrier, in nanoseconds. */
  Waiters(long linger) {
    this.linger = linger;
  }

  /** How many needs are neither settled nor given up. */
  int live() {
    return live;
  }

  /** Whether somebody only looks, without waiting. */
  boolean hasLooks() {
    return !looks.isEmpty();
  }

  /** Whether the server is to be asked for anybody. */
  boolean wanted() {
    return live > 0 || !probes.isEmpty();
  }

  /** Whether the server is asked for records alone, so that an answer may take its time (REC-21). */
  boolean onlyFollows() {
    return live > 0 && live == followed && probes.isEmpty();
  }

  private void count(Need need, int change) {
    live += change;
    followed += need.group.follows ? change : 0;
  }

  /** Whether a barrier waits for any of it now: not one that only looks or records, and no prober. */
  boolean awaited() {
    return Stream.concat(ordered.values().stream(), others.values().stream())
        .flatMap(needs -> StreamSupport.stream(needs.spliterator(), false))
        .anyMatch(need -> !need.isDone() && !need.group.follows && need.group.timeout != 0);
  }

  /** The prober of an epoch, or null. */
  Probe probe(String epoch) {
    return probes.get(epoch);
  }

  // Coming and going

  /** The overload rule: where the known lag exceeds the deadline nobody parks, one prober goes on (BAR-40). */
  Visibility lagging(Need need, long now, String position) {
    if (need.group.follows) {
      return null; // nobody waits for it, and what was not asked for is no finding (REC-13)
    }
    if (!need.isPosition) {
      if (timeoutsInARow >= FAILED_IN_A_ROW && !others.isEmpty()) {
        return Visibility.notYet(timeoutsInARow + " waits in a row timed out there");
      }
      return null;
    }
    Probe probe = probes.get(need.epoch);
    boolean looking = need.group.timeout == 0; // nobody would wait anyway
    if (looking
        || probe == null
        || Long.compareUnsigned(probe.counter, need.counter) > 0
        || unknown.containsKey(need.epoch)) {
      return null;
    }
    long behind = now - probe.since;
    if (behind <= need.group.timeout) {
      return null;
    }
    return Visibility.notYet(
        "at %s, wanted %s; it lags by more than %.1f s, longer than the deadline"
            .formatted(position, Long.toUnsignedString(need.counter), behind / 1e9));
  }

  /** Parks a need; true where an earlier one of the same epoch has to be seen first. */
  boolean add(Need need) {
    need.parked = true;
    boolean ridesAlong = keep(need);
    need.late = ridesAlong;
    need.firstRound = rounds + 1;
    if (need.group.timeout == 0) {
      looks.add(need);
      ridesAlong = false;
    }
    count(need, 1);
    return ridesAlong;
  }

  private boolean keep(Need need) {
    if (!need.isPosition) {
      others.computeIfAbsent(need.writeId, id -> new ArrayList<>(1)).add(need);
      return false;
    }
    PositionQueue queue = ordered.computeIfAbsent(need.epoch, epoch -> new PositionQueue());
    Need first = queue.first();
    queue.push(need);
    return first != null && Long.compareUnsigned(first.counter, need.counter) <= 0 && first.answer != null;
  }

  /** The barrier's deadline has passed, or it was cancelled; a prober goes on for the least position. */
  void giveUp(Need need) {
    if (need.isDone()) {
      return;
    }
    need.group.settle(need, null);
    if (!need.parked) {
      return; // its barrier gave up before it was parked here
    }
    count(need, -1);
    timeoutsInARow += need.group.follows ? 0 : 1; // what dry-run gives up is no wait of anybody's
    if (need.isPosition && !need.group.cancelled) {
      Probe probe = probes.get(need.epoch);
      if (probe == null || Long.compareUnsigned(need.counter, probe.counter) < 0) {
        probes.put(need.epoch, new Probe(need.counter, need.group.since, need.writeId));
      }
    }
    forgetOther(need);
  }

  private void forgetOther(Need need) {
    if (need.isPosition) {
      return;
    }
    List<Need> queue = others.get(need.writeId);
    if (queue != null) {
      queue.remove(need);
      if (queue.isEmpty()) {
        others.remove(need.writeId);
      }
    }
  }

  /** The server or its epoch is another one: what it did not know, it may know now. */
  void forgetUnknown() {
    unknown.clear();
  }

  /** Nobody is asked for any more but who waits. */
  void forgetProbes() {
    probes.clear();
  }

  // Asking

  /** What to ask for: of each epoch the least position that somebody waits for (the others come after it). */
  List<WriteId> choose(long now, long wantedAt) {
    rounds++;
    List<WriteId> chosen = new ArrayList<>();
    ordered.values().removeIf(queue -> queue.first() == null);
    for (PositionQueue queue : ordered.values()) {
      chosen.add(queue.first().writeId);
    }
    for (Iterator<Map.Entry<String, Probe>> all = probes.entrySet().iterator(); all.hasNext(); ) {
      Map.Entry<String, Probe> entry = all.next();
      Probe probe = entry.getValue();
      PositionQueue queue = ordered.get(entry.getKey());
      if (now - Math.max(probe.since, wantedAt) > linger) {
        all.remove();
      } else if (queue == null || Long.compareUnsigned(probe.counter, queue.first().counter) < 0) {
        chosen.add(probe.writeId);
      }
    }
    List<WriteId> objects = others.keySet().stream().limit(MOST_OBJECTS).toList();
    if (objects.size() < others.size()) {
      for (WriteId object : objects) { // the next round begins with the others
        others.put(object, others.remove(object));
      }
    }
    chosen.addAll(objects);
    return chosen;
  }

  // Answers; each returns the groups that are over

  /** Settles what the answers decide, and the proofs that came with them: the server has applied so much. */
  List<Group> answer(List<WriteId> ids, List<Visibility> answers, Map<String, Long> applied, long now) {
    List<Group> released = new ArrayList<>();
    for (int place = 0; place < ids.size(); place++) {
      WriteId id = ids.get(place);
      if (id.isPosition()) {
        answerPosition((Ordered) id.version(), answers.get(place), now, released);
      } else {
        answerOther(id, answers.get(place), released);
      }
    }
    applied.forEach(
        (epoch, counter) -> {
          PositionQueue queue = ordered.get(epoch);
          if (queue != null) {
            for (Need need : queue.reached(counter)) {
              settle(need, Visibility.VISIBLE, released);
            }
          }
          dropProbe(epoch, counter);
        });
    if (!looks.isEmpty()) {
      endLooks(released);
    }
    return released;
  }

  /** One answer for whoever waits. */
  List<Group> answerAll(Visibility answer) {
    List<Group> released = new ArrayList<>();
    for (Need need : takeAll()) {
      settle(need, answer, released);
    }
    return released;
  }

  /** The server is out: whoever waits goes on without it. */
  List<Group> leaveOut() {
    List<Group> released = new ArrayList<>();
    for (Need need : takeAll()) {
      if (!need.isDone()) {
        need.leftOut = true;
        settle(need, null, released);
      }
    }
    return released;
  }

  private List<Need> takeAll() {
    List<Need> needs = new ArrayList<>();
    ordered.values().forEach(queue -> queue.forEach(needs::add));
    others.values().forEach(needs::addAll);
    ordered.clear();
    others.clear();
    return needs;
  }

  /** Who only looks is answered by the first question that was asked for it (BAR-29). */
  private void endLooks(List<Group> released) {
    List<Need> before = looks;
    looks = new ArrayList<>();
    for (Need need : before) {
      if (need.isDone()) {
        continue;
      }
      if (need.firstRound > rounds || need.answer == null) { // not asked for, or not answered yet
        looks.add(need);
        continue;
      }
      count(need, -1);
      forgetOther(need);
      if (need.group.settle(need, null)) {
        released.add(need.group);
      }
    }
  }

  private void dropProbe(String epoch, long applied) {
    Probe probe = probes.get(epoch);
    if (probe != null && Long.compareUnsigned(probe.counter, applied) <= 0) {
      probes.remove(epoch);
    }
  }

  private void answerPosition(Ordered asked, Visibility answer, long now, List<Group> released) {
    PositionQueue queue = ordered.getOrDefault(asked.epoch(), new PositionQueue());
    Need first = queue.first();
    if (answer.isVisible()) {
      // Without a call of `applied` in the same reply this proves no more than what was asked.
      for (Need need : queue.reached(asked.counter())) {
        settle(need, Visibility.VISIBLE, released);
      }
      dropProbe(asked.epoch(), asked.counter());
    } else if (answer.unknownEpoch()) {
      long since = unknown.computeIfAbsent(asked.epoch(), epoch -> first != null ? first.group.since : now);
      for (Need need : queue) {
        if (Long.compareUnsigned(need.counter, asked.counter()) < 0) {
          continue; // it came meanwhile, and was not asked for
        }
        need.answer = answer;
        if (now - since >= need.group.timeout) {
          settle(need, Visibility.unproven("unknown epoch: " + answer.reason(), UnprovenKind.HISTORY), released);
        }
      }
    } else if (answer.isUnproven()) {
      // Positions of one epoch are a prefix: what cannot be proved up to here cannot be proved beyond.
      for (Need need : queue.fromCounter(asked.counter())) {
        settle(need, answer, released);
      }
      probes.remove(asked.epoch());
    } else if (first != null) {
      first.answer = answer;
      for (Need need : looks) { // what is not there up to here is not there beyond
        if (need.isPosition
            && need.epoch.equals(asked.epoch())
            && Long.compareUnsigned(need.counter, asked.counter()) >= 0
            && need.firstRound <= rounds) {
          need.answer = answer;
        }
      }
    }
  }

  private void answerOther(WriteId id, Visibility answer, List<Group> released) {
    List<Need> needs = others.getOrDefault(id, List.of());
    if (!answer.isVisible() && !answer.isUnproven()) {
      for (Need need : needs) {
        need.answer = answer;
      }
      return;
    }
    others.remove(id);
    for (Need need : needs) {
      settle(need, answer, released);
    }
  }

  private void settle(Need need, Visibility answer, List<Group> released) {
    if (need.isDone()) {
      return;
    }
    count(need, -1);
    timeoutsInARow = 0;
    need.late = need.late || rounds > need.firstRound;
    if (need.group.settle(need, answer)) {
      released.add(need.group);
    }
  }
}
