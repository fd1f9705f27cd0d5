package dev.antipode.internal.engine;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.Ordered;
import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import java.net.ConnectException;
import java.net.SocketException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What a server says in answer to a question, by the fields of a step ({@code spec/vectors/README.md}).
 *
 * @param says by the write's name, what is said of it whatever was applied
 * @param applied by epoch, the greatest position; null where the reply gives none
 */
record ScriptedReply(
    Map<String, String> says, Map<String, Long> applied, String epoch, String instance, String fault, boolean replaced) {

  static ScriptedReply of(JsonNode step) {
    String epoch = step.path("epoch").asText("e1");
    Map<String, String> says = new HashMap<>();
    step.path("says").properties().forEach(each -> says.put(each.getKey(), each.getValue().asText()));
    Map<String, Long> applied = new HashMap<>(Map.of(epoch, 0L));
    step.path("applied").properties()
        .forEach(each -> applied.put(each.getKey(), Long.parseUnsignedLong(each.getValue().asText())));
    return new ScriptedReply(
        says,
        step.path("applied").isNull() ? null : applied,
        epoch,
        step.path("instance").asText("i1"),
        step.path("fault").asText(""),
        step.path("replaced").asBoolean());
  }

  /** Return the same, which replaces nothing. */
  ScriptedReply still() {
    return new ScriptedReply(says, applied, epoch, instance, fault, false);
  }

  /** Answer as a shim does: the proofs of the reply first, then a word for each write. */
  List<Visibility> answers(List<WriteId> ids, Server server, Map<WriteId, String> names) throws Exception {
    switch (fault) {
      case "silent" -> throw new ConnectException("connection refused");
      case "own" -> throw new SocketException("Too many open files");
      case "refused" -> throw new IllegalStateException("the server refuses");
      default -> { }
    }
    if (applied != null && server.store().capabilities().versions() == Versions.POSITION) {
      server.applied(instance, epoch, applied);
    }
    if (replaced) {
      ScriptedServer.push(server::reset);
    }
    return ids.stream().map(id -> visibility(names.getOrDefault(id, ""), id)).toList();
  }

  private Visibility visibility(String name, WriteId id) {
    String word = says.get(name);
    if (word != null) {
      return visibility(word);
    }
    if (!id.isPosition() || applied == null) {
      return Visibility.NOT_YET;
    }
    Ordered wanted = (Ordered) id.version();
    Long reached = applied.get(wanted.epoch());
    boolean isThere = reached != null && Long.compareUnsigned(reached, wanted.counter()) >= 0;
    return isThere ? Visibility.VISIBLE : Visibility.NOT_YET;
  }

  private static Visibility visibility(String word) {
    return switch (word) {
      case "visible" -> Visibility.VISIBLE;
      case "not_yet" -> Visibility.NOT_YET;
      case "unknown_epoch" -> Visibility.unknownEpoch("it does not know the epoch");
      case "unanswered" -> Visibility.unanswered("it is loading");
      case "unproven" -> Visibility.unproven("the script says so");
      default -> Visibility.unproven(
          "the script says so", UnprovenKind.valueOf(word.substring("unproven-".length()).toUpperCase()));
    };
  }
}
