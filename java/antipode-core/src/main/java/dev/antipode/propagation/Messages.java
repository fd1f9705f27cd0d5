package dev.antipode.propagation;

import dev.antipode.Delivery;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.MalformedLineageException;
import dev.antipode.ScopeKind;
import dev.antipode.internal.propagation.Gate;
import dev.antipode.internal.trust.Decision;
import dev.antipode.internal.trust.Direction;
import dev.antipode.internal.trust.Judgement;
import dev.antipode.internal.trust.Seal;
import dev.antipode.internal.trust.TrustLog;
import dev.antipode.internal.trust.TrustSettings;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Messages: one scope each, filled from the message's own header, and the header of what is sent (PROP-17 to PROP-20). */
public final class Messages {
  /** The header of messages. */
  public static final String HEADER = Carriers.LINEAGE_HEADER;

  /** The same in JMS, whose property names are Java identifiers. */
  public static final String JMS_PROPERTY = Carriers.JMS_PROPERTY;

  private static final String SENDER = "a message";
  private static final String NO_TEXT = "?"; // stands for a value that is no text: it is malformed

  private Messages() {}

  /**
   * What a consumer knows of a message.
   *
   * @param lineageIn whether its lineage is taken; null: as trust says (TRUST-31)
   * @param delivery whether a barrier may give the message back; null where nobody can
   * @param sender where it came from, for log lines
   */
  public record Options(Boolean lineageIn, Delivery delivery, String sender) {
    /** Nothing special. */
    public static final Options DEFAULTS = new Options(null, null, SENDER);
  }

  /**
   * Opens the scope of one message, for try-with-resources, from a lineage text; null or empty: there is none.
   *
   * <p>What may not be believed is dropped and counted; what cannot be read leaves the scope incomplete. Never throws for
   * what came in. With {@code mode=off} a lineage is still taken, because it is still passed on (PROP-26).
   */
  public static LineageScope open(String text, Options options) {
    return open(text == null || text.isEmpty() ? List.of() : List.of(text), options);
  }

  /** The same from a message's headers or properties, of whatever types its client gives. */
  public static LineageScope open(Map<String, ?> headers, Options options) {
    return open(valuesIn(headers), options);
  }

  private static LineageScope open(List<String> values, Options options) {
    LineageScope scope = LineageScope.open(Lineage.EMPTY, ScopeKind.MESSAGE, options.delivery());
    receive(scope, values, options);
    return scope;
  }

  /** Joins a message's or value's lineage text into a scope, if it is trusted and can be read. */
  public static void receive(LineageScope scope, String text, Options options) {
    receive(scope, List.of(text), options);
  }

  /** The same from a message's headers or properties: of one more message that this scope handles. */
  public static void receive(LineageScope scope, Map<String, ?> headers, Options options) {
    receive(scope, valuesIn(headers), options);
  }

  private static void receive(LineageScope scope, List<String> values, Options options) {
    List<Header> lines = values.stream().map(value -> new Header(HEADER, value)).toList();
    Carriers.InboundHeaders came = Carriers.read(lines);
    if (!came.hasLineage()) {
      return;
    }
    TrustSettings trust = TrustSettings.inForce();
    Instant now = Instant.now();
    Gate.ReceivedLineage taken = Gate.take(
        came,
        text -> Judgement.messageIn(text, trust, options.lineageIn(), now),
        Direction.MESSAGE_IN,
        options.sender());
    scope.receive(taken.lineage());
    taken.noteIn(scope);
  }

  private static List<String> valuesIn(Map<String, ?> headers) {
    List<String> values = new ArrayList<>();
    if (headers != null) {
      headers.forEach((name, value) -> {
        if (value != null && (HEADER.equalsIgnoreCase(name) || JMS_PROPERTY.equalsIgnoreCase(name))) {
          values.add(text(value));
        }
      });
    }
    return values;
  }

  /** A header's text; one that cannot be read for what is none, a number 1 for instance (PROP-17). */
  private static String text(Object value) {
    if (value instanceof byte[] octets) {
      return new String(octets, StandardCharsets.ISO_8859_1);
    }
    boolean isText = !(value instanceof Number || value instanceof Boolean || value instanceof Iterable || value instanceof Map);
    return isText ? value.toString() : NO_TEXT;
  }

  /** Whether a header's value is a lineage, and not something that the application has under that name. */
  public static boolean isLineage(Object value) {
    List<String> values = valuesIn(Collections.singletonMap(HEADER, value));
    List<Header> lines = values.stream().map(text -> new Header(HEADER, text)).toList();
    try {
      Carriers.read(lines).texts().forEach(text -> Lineage.deserialize(Seal.strip(text)));
      return !values.isEmpty();
    } catch (MalformedLineageException error) {
      return false;
    }
  }

  /**
   * The lineage of a scope as it may leave with a message: writes in flight are marked and counted (SCOPE-16).
   *
   * @param scope null: outside any, so it may be incomplete (SCOPE-31); not to be asked where the message has a lineage
   * @throws dev.antipode.PendingWriteException with {@code on_pending=raise}
   */
  public static Lineage leaving(LineageScope scope) {
    return scope == null ? Gate.leavingOutside(Direction.MESSAGE_OUT) : Gate.leaving(scope);
  }

  /**
   * The header's value for a message that is sent now; null where it carries none.
   *
   * @param lineageOut whether it may carry one; null: as trust says
   * @throws dev.antipode.PendingWriteException with {@code on_pending=raise}
   */
  public static String outgoing(Boolean lineageOut) {
    return outgoing(LineageScope.current(), lineageOut);
  }

  /** The same for a message of this scope; null: outside any, as {@link #leaving} says. */
  public static String outgoing(LineageScope scope, Boolean lineageOut) {
    if (scope == null && !Judgement.messageOut(TrustSettings.inForce(), lineageOut).accepted()) {
      return null; // it may carry none, so nothing is told as lost
    }
    return text(leaving(scope), scope, lineageOut);
  }

  /**
   * The header's value for a message with this lineage, of which {@link #leaving} has given what is the scope's; null where
   * it carries none.
   *
   * @param sender whose message it is, for a recorded history; null: nobody's
   */
  public static String text(Lineage lineage, LineageScope sender, Boolean lineageOut) {
    if (!lineage.hasContent()) {
      return null;
    }
    TrustSettings trust = TrustSettings.inForce();
    Decision decision = Judgement.messageOut(trust, lineageOut);
    if (!decision.accepted()) {
      TrustLog.report(decision, Direction.MESSAGE_OUT, "");
      return null;
    }
    return Gate.give(lineage, trust, Direction.MESSAGE_OUT, sender);
  }
}
