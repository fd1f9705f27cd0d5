package dev.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.LongString;
import dev.antipode.ConfigurationException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.WriteId;
import dev.antipode.observer.Observers;
import dev.antipode.propagation.Messages;
import dev.antipode.shim.Logs;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.TrustRules;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Pattern;

/** The properties of a message as they leave: the lineage in a copy of the headers, and nothing else is changed. */
final class Stamper {
  private static final Pattern MARK = Pattern.compile("[0-9a-f]{32}");
  private static final List<String> OURS = List.of(Messages.HEADER, Messages.JMS_PROPERTY);

  private final RegisteredStore store;
  private final RabbitOptions options;
  private final Room room;

  Stamper(RegisteredStore store, RabbitOptions options, Room room) {
    this.store = store;
    this.options = options;
    this.room = room;
  }

  /** A message's properties with a mark that no other message has. */
  record MarkedProperties(String mark, AMQP.BasicProperties properties) {}

  /**
   * A mark, and a copy of the properties that carries it: as the {@code message_id} where the application gives none. One
   * that the application gives may be used again for another message, whose arrival would then prove this one: such a
   * message carries a header of ours instead.
   */
  static MarkedProperties marked(AMQP.BasicProperties given) {
    String mark = UUID.randomUUID().toString().replace("-", "");
    AMQP.BasicProperties properties = given == null ? new AMQP.BasicProperties() : given;
    Map<String, Object> headers = new LinkedHashMap<>(Marks.headersOf(properties));
    AMQP.BasicProperties.Builder made = properties.builder();
    if (properties.getMessageId() == null) {
      made.messageId(mark);
      headers.remove(Marks.HEADER); // came along with properties of another message
    } else {
      headers.put(Marks.HEADER, mark);
    }
    return new MarkedProperties(mark, made.headers(headers.isEmpty() ? null : headers).build());
  }

  /**
   * The properties without another message's mark, whose arrival this one would prove (PROP-37). A {@code message_id} is a
   * mark where the lineage that came with it, or the scope's, names it.
   */
  static AMQP.BasicProperties withoutMark(AMQP.BasicProperties given) {
    Map<String, Object> headers = Marks.headersOf(given);
    boolean isMark = given != null && isNamedMark(given.getMessageId(), headers);
    if (!isMark && !headers.containsKey(Marks.HEADER)) {
      return given;
    }
    AMQP.BasicProperties.Builder made = given.builder();
    if (!headers.isEmpty()) {
      Map<String, Object> rest = new LinkedHashMap<>(headers);
      rest.remove(Marks.HEADER);
      made.headers(rest);
    }
    return (isMark ? made.messageId(null) : made).build();
  }

  private static boolean isNamedMark(String id, Map<String, Object> headers) {
    if (id == null || !MARK.matcher(id).matches()) {
      return false;
    }
    LineageScope scope = LineageScope.current();
    return scope != null && scope.held().serialize().contains(id)
        || carried(headers).values().stream().anyMatch(value -> Marks.text(value).contains(id));
  }

  /**
   * The properties as they leave: the same object where there is nothing to change, else a copy.
   *
   * @param own the message's own identifier, where it is tracked; else null
   */
  AMQP.BasicProperties stamped(AMQP.BasicProperties given, WriteId own) {
    Map<String, Object> headers = Marks.headersOf(given);
    Map<String, Object> carried = carried(headers);
    if (headers.get(Messages.HEADER) != null && !carried.containsKey(Messages.HEADER)) {
      Logs.warn(
          "AP405",
          "foreign header " + store.name(),
          "a message to " + store.name() + " has a header " + Messages.HEADER + " that is no lineage; it is left as it is, "
              + "so the message carries no lineage. Give the application's header another name.");
      return given;
    }
    String text = text(carried, own);
    if (text == null && carried.isEmpty()) {
      return given;
    }
    AMQP.BasicProperties properties = given == null ? new AMQP.BasicProperties() : given;
    Map<String, Object> rest = new LinkedHashMap<>(headers);
    rest.keySet().removeAll(carried.keySet());
    if (text == null) { // what came in and was not believed must not go on either (TRUST-5)
      return properties.builder().headers(rest).build();
    }
    AMQP.BasicProperties stamped = with(properties, rest, text);
    return room.holds(stamped) ? stamped : withoutRoom(given, properties, rest);
  }

  private static AMQP.BasicProperties with(AMQP.BasicProperties properties, Map<String, Object> rest, String text) {
    Map<String, Object> headers = new LinkedHashMap<>(rest);
    headers.put(Messages.HEADER, text);
    return properties.builder().headers(headers).build();
  }

  /** The lineages among the headers, by name: those of a message whose properties are published again. */
  private static Map<String, Object> carried(Map<String, Object> headers) {
    Map<String, Object> carried = new HashMap<>();
    for (String name : OURS) {
      Object value = headers.get(name);
      boolean isText = value instanceof String || value instanceof LongString || value instanceof byte[];
      if (isText && Messages.isLineage(value)) {
        carried.put(name, value);
      }
    }
    return carried;
  }

  /** The header's value; null where the message carries none. */
  private String text(Map<String, Object> carried, WriteId own) {
    LineageScope scope = LineageScope.current();
    boolean isAnothers = !carried.isEmpty() && !cameWith(scope, carried);
    String text;
    if (own == null && !isAnothers) {
      text = Messages.outgoing(scope, options.lineageOut());
    } else {
      Lineage lineage = scope == null && isAnothers ? Lineage.EMPTY : Messages.leaving(scope);
      if (isAnothers) {
        lineage = lineage.union(received(carried, scope));
      }
      if (own != null) {
        lineage = lineage.including(own);
      }
      text = Messages.text(lineage, scope, options.lineageOut());
    }
    if (text == null && options.stamped() && scope != null && store.records() && isAllowed()) {
      return sealed(Lineage.EMPTY);
    }
    return text;
  }

  private boolean isAllowed() {
    return TrustRules.stampsMessages(options.lineageOut());
  }

  private static String sealed(Lineage lineage) {
    return TrustRules.messageText(lineage);
  }

  /** Whether these are headers of the very message that the scope was opened for: their lineage is in the scope. */
  private static boolean cameWith(LineageScope scope, Map<String, Object> carried) {
    return scope != null
        && scope.delivery() instanceof MessageDelivery delivery
        && carried.entrySet().stream().allMatch(each -> each.getValue().equals(delivery.headers().get(each.getKey())));
  }

  /** The lineage of another message whose properties are published here, as far as it may be believed. */
  private Lineage received(Map<String, Object> carried, LineageScope scope) {
    String sender = "a message to " + store.name();
    try (LineageScope other = Messages.open(carried, new Messages.Options(options.lineageIn(), null, sender))) {
      if (scope != null) {
        Observers.events().onScopeCopied(other, scope);
      }
      boolean isDropped = scope == null && other.gaps().stream().anyMatch(gap -> gap.reason().equals("untrusted"));
      // What said what it depends on goes, and leaves nothing in its place (SCOPE-31).
      return isDropped ? other.lineage().union(Messages.leaving(null)) : other.lineage();
    }
  }

  /** The lineage would make the header frame too long: it is left out, and said so, before anything is sent. */
  private AMQP.BasicProperties withoutRoom(
      AMQP.BasicProperties given, AMQP.BasicProperties properties, Map<String, Object> rest) {
    if (properties.getHeaders() != null && !room.holds(properties)) {
      return given; // too long without us: the client's own answer
    }
    String words = "a message to " + store.name() + " has no room for its lineage: its headers fill a frame of "
        + room.frameMax() + " bytes";
    if (options.onNoRoom() == OnNoRoom.RAISE) {
      throw new ConfigurationException(
          "AP510", words + ". Put less into its headers, raise the frame size, or say onNoRoom(SEND).");
    }
    Observers.events().onLineageIncomplete("budget", store.name(), LineageScope.current(), true);
    Logs.warn("AP510", "no room " + store.name(), words + "; it is sent without. Put less into its headers.");
    // Where there is room for that much, what was lost does not look empty.
    AMQP.BasicProperties lost = with(properties, rest, sealed(Lineage.EMPTY.markedIncomplete()));
    return room.holds(lost) ? lost : properties.builder().headers(rest).build();
  }
}
