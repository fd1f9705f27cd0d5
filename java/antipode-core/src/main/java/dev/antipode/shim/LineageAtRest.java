package dev.antipode.shim;

import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.internal.propagation.Gate;
import dev.antipode.internal.trust.Decision;
import dev.antipode.internal.trust.Direction;
import dev.antipode.internal.trust.Judgement;
import dev.antipode.internal.trust.TrustLog;
import dev.antipode.internal.trust.TrustSettings;
import dev.antipode.propagation.Carriers;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;

/** Lineages beside values: what may be written there, and what is taken from there (TRUST-31, SHIM-14). */
public final class LineageAtRest {
  private LineageAtRest() {}

  /** The text that rests beside a value, sealed where seals are asked for; empty where none does. */
  public static String text(Lineage lineage, boolean lineageOut) {
    if (!lineage.hasContent()) {
      return "";
    }
    TrustSettings trust = TrustSettings.inForce();
    Decision decision = Judgement.messageOut(trust, lineageOut ? null : Boolean.FALSE);
    if (!decision.accepted()) {
      TrustLog.report(decision, Direction.VALUE_OUT, "");
      return "";
    }
    String text = Gate.give(lineage, trust, Direction.VALUE_OUT, null);
    return text == null ? "" : text;
  }

  /** The lineage that rests beside a value, as octets; null for none. */
  public static Lineage lineage(byte[] octets, String store, boolean lineageIn) {
    return lineage(octets == null ? null : new String(octets, StandardCharsets.ISO_8859_1), store, lineageIn);
  }

  /**
   * The lineage that rests beside a value; null for none. Texts between white space are joined. What cannot be read is
   * incomplete for the store (SHIM-14).
   */
  public static Lineage lineage(String text, String store, boolean lineageIn) {
    if (text == null || !lineageIn) {
      return Lineage.EMPTY;
    }
    List<String> texts = Arrays.stream(text.split("\\s+")).filter(each -> !each.isEmpty()).toList();
    if (texts.isEmpty()) {
      return Lineage.EMPTY;
    }
    TrustSettings trust = TrustSettings.inForce();
    Instant now = Instant.now();
    Gate.ReceivedLineage taken = Gate.take(
        Carriers.unwrap(texts),
        each -> Judgement.valueIn(each, trust, now),
        Direction.VALUE_IN,
        "a value of " + store);
    taken.tell(LineageScope.current());
    return taken.isMalformed() ? taken.lineage().vouched().markedIncomplete(store) : taken.lineage();
  }
}
