package dev.antipode;

import java.time.Duration;
import java.util.List;

/**
 * What a barrier found out about one store (BAR-10).
 *
 * @param verdict the worst of its servers and writes (BAR-12)
 * @param reason why, in a sentence
 * @param waited how long this store was waited for
 * @param servers the servers that were judged, and those left out (BAR-23)
 * @param kind where it is unproven: what kept it from being proved (BAR-59); else null
 */
public record StoreResult(
    Verdict verdict, String reason, Duration waited, List<ServerResult> servers, UnprovenKind kind) {

  /** A verdict that no server was asked for. */
  public StoreResult(Verdict verdict, String reason) {
    this(verdict, reason, Duration.ZERO, List.of(), null);
  }

  /** The code of the verdict, one of spec/data/messages.json (OBS-15); empty where the store is visible at all its servers. */
  public String code() {
    return switch (verdict) {
      case VISIBLE -> leftOut().isEmpty() ? "" : "AP206";
      case NOT_YET, TIMED_OUT -> servers.stream().anyMatch(ServerResult::overloaded) ? "AP205" : "AP201";
      case ELSEWHERE -> "AP103";
      case UNPROVEN -> (kind == null ? UnprovenKind.OTHER : kind).code();
    };
  }

  /** The servers that did not answer, and of which a pass does not speak (BAR-26). */
  public List<String> leftOut() {
    return servers.stream().filter(ServerResult::leftOut).map(ServerResult::address).toList();
  }
}
