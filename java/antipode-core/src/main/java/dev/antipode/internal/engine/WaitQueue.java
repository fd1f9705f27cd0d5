package dev.antipode.internal.engine;

import dev.antipode.Ordered;
import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.internal.store.Ages;
import dev.antipode.shim.Visibility;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * Who waits at one server, what it is to be asked for them, and what an answer settles (spec BAR, EPOCH). Nothing here
 * asks or sleeps: {@link ServerEngine} does, and holds its lock round every call.
 *
 * <p>When a barrier is told <em>too late</em> before its deadline (BAR-40, BAR-57): never without a look, only behind an answer
 * <em>not yet</em> to a question that was asked for it, where the reason stands even then. Lag: a position's age counts from
 * when any server of the store was seen past it ({@link Ages}), never from what somebody asks for. Stuck: so many waits for one
 * key (an object) or epoch (a position) timed out in a row, each begun after the server last moved, and none much shorter than
 * the deadline now. Any growth of the server's position, a write of the key or epoch that is seen, and ten seconds without
 * another time-out end it.
 */
final class WaitQueue {
  private static final int MOST_OBJECTS = 200;
  private static final int FAILED_IN_A_ROW = 5;
  private static final int MOST_KEPT = 1000; // unknown epochs, and as many keys and epochs that timed out (BAR-60)

  /** An epoch that the server does not know: since when, and when it last said so. */
  private record UnknownEpoch(long since, long last) {}

  /** Waits in a row that timed out for one key or epoch: how many, the shortest's nanoseconds, and when the last did. */
  private record TimeoutStreak(int times, long shortest, long last) {}

  /** The least position of an epoch that was given up, since when it was wanted: one prober goes on for it. */
  record Probe(long counter, long since, WriteId writeId) {}

  private final long linger;
  boolean inTurns; // the shim asks for one object after the other: what is unanswered was not asked for (its own pace)
  private int live;
  private int followed; // of them: nobody waits for these
  private List<PendingWait> looks = new ArrayList<>();
  private final Map<String, Probe> probes = new HashMap<>();
  private final Map<String, PositionQueue> ordered = new HashMap<>();
  private final Map<WriteId, Set<PendingWait>> others = new LinkedHashMap<>();
  private int rounds;
  private final Map<String, UnknownEpoch> unknown = new LinkedHashMap<>(); // the oldest word first
  private final Map<Object, TimeoutStreak> stuck = new LinkedHashMap<>(); // by key or epoch
  private Map<String, Long> applied = Map.of();
  private long movedAt = Ticks.LONG_AGO;

  /** {@code linger}: how long a server is asked on after the last barrier, in nanoseconds. */
  WaitQueue(long linger) {
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

  private void count(PendingWait need, int change) {
    live += change;
    followed += need.group.follows ? change : 0;
  }

  /** Whether a barrier waits for any of it now: not one that only looks or records, and no prober. */
  boolean awaited() {
    return Stream.concat(ordered.values().stream(), others.values().stream())
        .flatMap(needs -> StreamSupport.stream(needs.spliterator(), false))
        .anyMatch(need -> !need.isDone() && !need.group.follows && need.group.timeout != 0);
  }

  /** Return those that wait here, and name their servers anew where those change. */
  Set<WaitGroup> changing() {
    return Stream.concat(ordered.values().stream(), others.values().stream())
        .flatMap(needs -> StreamSupport.stream(needs.spliterator(), false))
        .filter(need -> !need.isDone() && need.group.hasLost != null)
        .map(need -> need.group)
        .collect(Collectors.toSet());
  }

  /** Return the least position of this epoch that is waited for; null where something else is, too, or nobody waits. */
  Long nearest(String epoch) {
    if (onlyFollows() || !others.isEmpty() || probes.keySet().stream().anyMatch(each -> !each.equals(epoch))) {
      return null;
    }
    for (Map.Entry<String, PositionQueue> each : ordered.entrySet()) {
      if (!each.getKey().equals(epoch) && each.getValue().first() != null) {
        return null;
      }
    }
    PositionQueue queue = ordered.get(epoch);
    PendingWait first = queue == null ? null : queue.first();
    Probe probe = probes.get(epoch);
    if (first == null || (probe != null && Long.compareUnsigned(probe.counter, first.counter) < 0)) {
      return probe == null ? null : probe.counter;
    }
    return first.counter;
  }

  /** The prober of an epoch, or null. */
  Probe probe(String epoch) {
    return probes.get(epoch);
  }

  /** Return how many epochs are kept that the server does not know. */
  int unknownEpochs() {
    return unknown.size();
  }

  // Coming and going

  /**
   * Parks a need; true where an earlier one of the same epoch has to be seen first.
   *
   * @param lag the server's, in nanoseconds, where the need is for the epoch that it is in, else 0
   */
  boolean add(PendingWait need, long lag) {
    need.parked = true;
    boolean ridesAlong = keep(need);
    need.firstRound = rounds + 1;
    if (need.group.timeout == 0 || overload(need, lag, need.group.since) != null) {
      looks.add(need);
      ridesAlong = false;
    }
    count(need, 1);
    return ridesAlong;
  }

  /** Return why waiting on is known to be in vain; null where it is not. */
  private String overload(PendingWait need, long lag, long now) {
    if (need.group.follows || unknown.containsKey(need.epoch)) {
      return null; // in dry-run nobody waits, and a record is of what the server said (REC-13); unknown: EPOCH-13
    }
    long timeout = need.group.timeout;
    if (lag > timeout) {
      return "it lags by %.1f s, longer than the deadline".formatted(lag / 1e9);
    }
    TimeoutStreak known = stuck.get(need.key());
    boolean isStuck = known != null
        && known.times >= FAILED_IN_A_ROW
        && timeout <= 2 * known.shortest
        && now - known.last <= linger;
    return isStuck ? known.times + " waits in a row timed out there" : null;
  }

  private boolean keep(PendingWait need) {
    if (!need.isPosition) {
      others.computeIfAbsent(need.writeId, id -> new LinkedHashSet<>(2)).add(need);
      return false;
    }
    PositionQueue queue = ordered.computeIfAbsent(need.epoch, epoch -> new PositionQueue());
    PendingWait first = queue.first();
    queue.push(need);
    boolean hurries = onlyFollows() && !need.group.follows; // those that came first may take their time (REC-21)
    return !hurries && first != null && Long.compareUnsigned(first.counter, need.counter) <= 0 && first.answer != null;
  }

  /** The barrier's deadline has passed, or it was cancelled; a prober goes on for the least position. */
  void giveUp(PendingWait need, long now) {
    if (need.isDone()) {
      return;
    }
    need.group.settle(need, null);
    if (!need.parked) {
      return; // its barrier gave up before it was parked here
    }
    count(need, -1);
    noteTimeout(need, now);
    if (need.isPosition && !need.group.cancelled && !need.group.isOutdated()) {
      Probe probe = probes.get(need.epoch);
      if (probe == null || Long.compareUnsigned(need.counter, probe.counter) < 0) {
        probes.put(need.epoch, new Probe(need.counter, need.group.since, need.writeId));
      }
    }
    forgetOther(need);
  }

  private void noteTimeout(PendingWait need, long now) {
    WaitGroup group = need.group;
    boolean isOver = group.cancelled || group.overloaded || group.isOutdated();
    boolean isNoWait = group.follows || isOver || group.timeout == 0;
    boolean hasMoved = group.since < movedAt || unknown.containsKey(need.epoch);
    if (isNoWait || hasMoved || now - group.since < group.timeout / 2) {
      return;
    }
    TimeoutStreak before = stuck.remove(need.key());
    if (before == null || now - before.last > linger) {
      before = new TimeoutStreak(0, group.timeout, now);
    }
    stuck.put(need.key(), new TimeoutStreak(before.times + 1, Math.min(before.shortest, group.timeout), now));
    if (stuck.size() > MOST_KEPT) {
      stuck.remove(stuck.keySet().iterator().next());
    }
  }

  private void forgetOther(PendingWait need) {
    if (need.isPosition) {
      return;
    }
    Set<PendingWait> queue = others.get(need.writeId);
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
    forgetOld(now);
    List<WriteId> objects = others.keySet().stream().limit(MOST_OBJECTS).toList();
    if (objects.size() < others.size()) {
      for (WriteId object : objects) { // the next round begins with the others
        others.put(object, others.remove(object));
      }
    }
    chosen.addAll(objects);
    return chosen;
  }

  /** Unknown epochs are kept while somebody waits for them, and ten seconds longer (BAR-60). */
  private void forgetOld(long now) {
    for (Iterator<UnknownEpoch> all = unknown.values().iterator(); all.hasNext(); all.remove()) {
      if (now - all.next().last <= linger && unknown.size() <= MOST_KEPT) {
        return;
      }
    }
  }

  // Answers; each returns the groups that are over

  /**
   * Settles what the answers decide, and the proofs that came with them: the server has applied so much.
   *
   * @param reached what these very answers proved of positions; empty where they proved nothing
   * @param proof by which question they came
   * @param lag the server's, in nanoseconds, after this answer, for needs of the epoch that it is in ({@code current})
   */
  List<WaitGroup> answer(
      List<WriteId> ids,
      List<Visibility> answers,
      Map<String, Long> reached,
      long now,
      Proof proof,
      String current,
      long lag) {
    List<WaitGroup> released = new ArrayList<>();
    if (!reached.isEmpty() && !reached.equals(applied)) {
      applied = reached;
      movedAt = now;
      stuck.clear();
    }
    for (int place = 0; place < ids.size(); place++) {
      WriteId id = ids.get(place);
      if (id.isPosition()) {
        answerPosition((Ordered) id.version(), answers.get(place), now, proof, released);
      } else {
        answerOther(id, answers.get(place), proof, released);
      }
    }
    reached.forEach(
        (epoch, counter) -> {
          PositionQueue queue = ordered.get(epoch);
          if (queue != null) {
            for (PendingWait need : queue.reached(counter)) {
              settle(need, Visibility.VISIBLE, proof, released);
            }
          }
          dropProbe(epoch, counter);
        });
    if (!looks.isEmpty()) {
      endLooks(released, current, lag, now);
    }
    return released;
  }

  /** One answer for whoever waits. */
  List<WaitGroup> answerAll(Visibility answer) {
    List<WaitGroup> released = new ArrayList<>();
    for (PendingWait need : takeAll()) {
      settle(need, answer, null, released);
    }
    return released;
  }

  /** The server is out: whoever waits goes on without it. */
  List<WaitGroup> leaveOut() {
    List<WaitGroup> released = new ArrayList<>();
    for (PendingWait need : takeAll()) {
      if (!need.isDone()) {
        need.leftOut = true;
        settle(need, null, null, released);
      }
    }
    return released;
  }

  private List<PendingWait> takeAll() {
    List<PendingWait> needs = new ArrayList<>();
    ordered.values().forEach(queue -> queue.forEach(needs::add));
    others.values().forEach(needs::addAll);
    ordered.clear();
    others.clear();
    return needs;
  }

  /** Who only looks (BAR-29), or would wait in vain (BAR-40), is answered by the first question that was asked for it. */
  private void endLooks(List<WaitGroup> released, String current, long lag, long now) {
    List<PendingWait> before = looks;
    looks = new ArrayList<>();
    for (PendingWait need : before) {
      if (need.isDone()) {
        continue;
      }
      boolean hopes = need.group.timeout > 0;
      boolean isAnswered = need.answer != null && !(hopes && need.answer.unanswered()); // nothing was said of it (BAR-40)
      if (need.firstRound > rounds || !isAnswered) { // not asked for, or not answered yet
        looks.add(need);
        continue;
      }
      if (hopes) {
        String why = overload(need, need.epoch.equals(current) ? lag : 0, now);
        if (why == null) {
          continue; // what was known at the call is past: it waits like others
        }
        String where = need.answer.reason();
        need.overloaded = true;
        need.answer = Visibility.notYet(where.isEmpty() ? why : where + "; " + why);
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

  private void answerPosition(Ordered asked, Visibility answer, long now, Proof proof, List<WaitGroup> released) {
    PositionQueue queue = ordered.getOrDefault(asked.epoch(), new PositionQueue());
    PendingWait first = queue.first();
    if (answer.isVisible()) {
      // Without a call of `applied` in the same reply this proves no more than what was asked.
      for (PendingWait need : queue.reached(asked.counter())) {
        settle(need, Visibility.VISIBLE, proof, released);
      }
      dropProbe(asked.epoch(), asked.counter());
    } else if (answer.unknownEpoch()) {
      UnknownEpoch known = unknown.remove(asked.epoch());
      long since = known != null ? known.since : now; // whoever waits may have begun at another server
      unknown.put(asked.epoch(), new UnknownEpoch(since, now));
      forgetOld(now);
      for (PendingWait need : queue) {
        if (Long.compareUnsigned(need.counter, asked.counter()) < 0) {
          continue; // it came meanwhile, and was not asked for
        }
        need.answer = answer;
        if (now - Math.min(since, need.group.since) >= need.group.timeout) {
          settle(need, Visibility.unproven("unknown epoch: " + answer.reason(), UnprovenKind.HISTORY), null, released);
        }
      }
    } else if (answer.isUnproven()) {
      // Positions of one epoch are a prefix: what cannot be proved up to here cannot be proved beyond.
      for (PendingWait need : queue.fromCounter(asked.counter())) {
        settle(need, answer, null, released);
      }
      probes.remove(asked.epoch());
    } else if (first != null) {
      first.answer = answer;
      for (PendingWait need : looks) { // what is not there up to here is not there beyond
        if (!need.isDone() // what is over changes no more
            && need.isPosition
            && need.epoch.equals(asked.epoch())
            && Long.compareUnsigned(need.counter, asked.counter()) >= 0
            && need.firstRound <= rounds) {
          need.answer = answer;
        }
      }
    }
  }

  private void answerOther(WriteId id, Visibility answer, Proof proof, List<WaitGroup> released) {
    Set<PendingWait> needs = others.getOrDefault(id, Set.of());
    if (!answer.isVisible() && !answer.isUnproven()) {
      for (PendingWait need : needs) {
        need.answer = answer;
        need.repeats &= answer.unanswered() && inTurns;
      }
      return;
    }
    others.remove(id);
    for (PendingWait need : needs) {
      settle(need, answer, proof, released);
    }
  }

  private void settle(PendingWait need, Visibility answer, Proof proof, List<WaitGroup> released) {
    if (need.isDone()) {
      return;
    }
    count(need, -1);
    stuck.remove(need.key());
    if (need.isPosition && rounds > need.firstRound) { // the first look did not show it (BAR-63)
      need.repeats = false;
    }
    if (need.group.settle(need, answer, proof)) {
      released.add(need.group);
    }
  }
}
