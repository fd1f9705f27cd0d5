package dev.antipode.internal.engine;

import dev.antipode.OnReplicaOut;
import dev.antipode.Ordered;
import dev.antipode.ServerResult;
import dev.antipode.StoreResult;
import dev.antipode.UnprovenKind;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.shim.EpochJudge;
import dev.antipode.shim.Visibility;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/** From the needs of a barrier to the verdict of each store (BAR-10 to BAR-13, BAR-26). */
final class Judgement {
  private static final List<Verdict> WORST_FIRST = List.of(Verdict.UNPROVEN, Verdict.TIMED_OUT, Verdict.NOT_YET);

  private static final String GONE = "is not listed any more, and a connection may still lead there";

  private Judgement() {}

  /**
   * The verdict of each store.
   *
   * @param waited nanoseconds
   * @param looked nobody waited, so that what is not visible is not yet
   */
  static Map<String, StoreResult> judge(Plan plan, List<PendingWait> needs, long waited, boolean looked) {
    Map<String, StoreResult> verdicts = new LinkedHashMap<>();
    for (StoreRequest asked : plan.asked()) {
      List<PendingWait> own = needs.stream().filter(need -> need.server.store() == asked.store()).toList();
      verdicts.put(asked.store().name(), judgeStore(asked, own, waited, looked));
    }
    for (StoreRequest asked : plan.recorded()) {
      verdicts.putIfAbsent(
          asked.store().name(), new StoreResult(Verdict.NOT_YET, "in dry-run: recorded, not waited for"));
    }
    plan.unregistered().forEach((name, answer) -> verdicts.put(
        name, new StoreResult(Verdict.UNPROVEN, answer.reason(), Duration.ZERO, List.of(), answer.kind())));
    for (String name : plan.elsewhere()) {
      verdicts.put(name, new StoreResult(Verdict.ELSEWHERE, "not registered in this process"));
    }
    return verdicts;
  }

  static StoreResult judgeStore(StoreRequest asked, List<PendingWait> needs, long waited, boolean looked) {
    List<ServerResult> servers = new ArrayList<>();
    Set<ServerEngine> known = new LinkedHashSet<>(asked.servers());
    needs.forEach(need -> known.add(need.server));
    Set<ServerEngine> divided =
        needs.stream().filter(need -> need.divided).map(need -> need.server).collect(Collectors.toSet());
    for (ServerEngine server : known) {
      List<PendingWait> own = needs.stream().filter(need -> need.server == server && !need.divided).toList();
      if (!own.isEmpty() || !divided.contains(server)) {
        servers.add(judgeWhole(server, own, asked, looked));
      }
    }
    for (String address : asked.gone()) {
      servers.add(new ServerResult(address, Verdict.UNPROVEN, GONE, true, UnprovenKind.CONNECTION));
    }
    List<ServerResult> judged = servers.stream().filter(server -> !server.leftOut()).toList();
    List<ServerResult> left = servers.stream().filter(ServerResult::leftOut).toList();
    if (judged.isEmpty() || (!left.isEmpty() && failsWithoutReplica(asked))) {
      String reason = left.isEmpty()
          ? "no server is registered"
          : left.stream().map(server -> server.address() + " " + server.reason()).collect(Collectors.joining("; "));
      UnprovenKind kind = left.isEmpty() ? UnprovenKind.NOT_OPENED : UnprovenKind.CONNECTION;
      return new StoreResult(Verdict.UNPROVEN, reason, Duration.ofNanos(waited), servers, kind);
    }
    for (Verdict verdict : WORST_FIRST) {
      List<ServerResult> bad = judged.stream().filter(server -> server.verdict() == verdict).toList();
      if (!bad.isEmpty()) {
        UnprovenKind kind =
            bad.stream().map(ServerResult::kind).filter(Objects::nonNull).min(Comparator.naturalOrder()).orElse(null);
        return new StoreResult(verdict, reasonOf(bad, judged), Duration.ofNanos(waited), servers, kind);
      }
    }
    String reason = "%d of %d %s at %s"
        .formatted(judged.size(), servers.size(), servers.size() == 1 ? "replica" : "replicas", wanted(asked));
    if (!left.isEmpty()) {
      reason += left.stream()
          .map(server -> server.address() + " (" + server.reason() + ")")
          .collect(Collectors.joining(", ", "; left out: ", ""));
    }
    return new StoreResult(Verdict.VISIBLE, reason, Duration.ofNanos(Math.min(late(needs), waited)), servers, null);
  }

  /** Return what a server's needs say of it: nothing is visible at one that was not asked for all (BAR-65). */
  private static ServerResult judgeWhole(ServerEngine server, List<PendingWait> needs, StoreRequest asked, boolean looked) {
    ServerResult result = judgeServer(server, needs, looked);
    Set<WriteId> ids = needs.stream().map(need -> need.writeId).collect(Collectors.toSet());
    if (result.verdict() != Verdict.VISIBLE || ids.containsAll(asked.ids())) {
      return result;
    }
    String reason = "replica " + server.address() + " was not asked for all of it";
    return new ServerResult(server.address(), looked ? Verdict.NOT_YET : Verdict.TIMED_OUT, reason, false, null);
  }

  /** Whether a server that does not answer makes the store unproven (BAR-26). */
  static boolean failsWithoutReplica(StoreRequest asked) {
    OnReplicaOut said = asked.store().options().onReplicaOut();
    return (said != null ? said : ProcessSettings.inForce().onReplicaOut()) == OnReplicaOut.FAIL;
  }

  private static String reasonOf(List<ServerResult> bad, List<ServerResult> judged) {
    String reason = bad.stream().map(ServerResult::reason).collect(Collectors.joining("; "));
    List<String> there =
        judged.stream().filter(server -> server.verdict() == Verdict.VISIBLE).map(ServerResult::address).toList();
    return there.isEmpty()
        ? reason
        : "%s (%s %s there)".formatted(reason, String.join(", ", there), there.size() == 1 ? "is" : "are");
  }

  /** How long after the call the last of these needs was settled, in nanoseconds. */
  static long late(List<PendingWait> needs) {
    long late = 0;
    for (PendingWait need : needs) {
      if (need.isDone()) {
        late = Math.max(late, need.seenAt - need.group.since);
      }
    }
    return late;
  }

  private static String wanted(StoreRequest asked) {
    WriteId first = asked.ids().get(0);
    if (asked.ids().size() == 1 && first.isPosition() && first.version() instanceof Ordered version) {
      return EpochJudge.place(version.epoch(), version.counter()) + " or later";
    }
    return asked.ids().size() + " writes or later";
  }

  /** Return what these needs say of one server. */
  static ServerResult judgeServer(ServerEngine server, List<PendingWait> needs, boolean looked) {
    String address = server.address();
    if (needs.stream().anyMatch(need -> need.leftOut)) {
      String words = server.down().isEmpty() ? "does not answer" : server.down();
      return new ServerResult(address, Verdict.UNPROVEN, "does not answer: " + words, true, UnprovenKind.CONNECTION);
    }
    Optional<Visibility> unproven = needs.stream()
        .map(need -> unproven(need.answer, looked))
        .filter(Objects::nonNull)
        .min(Comparator.comparing(Visibility::kind));
    if (unproven.isPresent()) {
      String words = address + ": " + unproven.get().reason();
      return new ServerResult(address, Verdict.UNPROVEN, words, false, unproven.get().kind());
    }
    for (PendingWait need : needs) {
      if (!need.isVisible()) {
        Verdict late = looked ? Verdict.NOT_YET : Verdict.TIMED_OUT;
        return new ServerResult(address, late, missing(need), false, null, needs.stream().anyMatch(each -> each.overloaded));
      }
    }
    return new ServerResult(address, Verdict.VISIBLE, "", false, null);
  }

  private static Visibility unproven(Visibility answer, boolean looked) {
    if (answer == null || answer.isUnproven()) {
      return answer;
    }
    boolean isUnknown = answer.unknownEpoch() && !looked;
    return isUnknown ? Visibility.unproven("unknown epoch: " + answer.reason(), UnprovenKind.HISTORY) : null;
  }

  private static String missing(PendingWait need) {
    ServerEngine server = need.server;
    if (!server.down().isEmpty()) {
      return "replica " + server.address() + " does not answer: " + server.down();
    }
    if (need.answer != null && !need.answer.reason().isEmpty()) {
      return "replica " + server.address() + ": " + need.answer.reason();
    }
    if (need.isPosition) {
      return "replica %s is at %s, wanted %s"
          .formatted(server.address(), server.position(), EpochJudge.place(need.epoch, need.counter));
    }
    return "replica " + server.address() + " has not got " + need.writeId;
  }
}
