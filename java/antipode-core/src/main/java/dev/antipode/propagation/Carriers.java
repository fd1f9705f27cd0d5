package dev.antipode.propagation;

import dev.antipode.internal.model.WireForm;
import dev.antipode.internal.propagation.Gate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;

/** Where a lineage stands in headers: read from raw lines, taken out, put in (PROP-1 to PROP-10). No trust here. */
public final class Carriers {
  /** The lineage's own header: in responses, messages, metadata, and where baggage cannot carry it (PROP-2). */
  public static final String LINEAGE_HEADER = "antipode-lineage";

  /** The same in JMS, whose names are Java identifiers (PROP-18). */
  public static final String JMS_PROPERTY = "antipode_lineage";

  /** W3C baggage. */
  public static final String BAGGAGE_HEADER = "baggage";

  /** The key of the lineage's member in baggage (PROP-1). */
  public static final String BAGGAGE_KEY = "antipode";

  /** The baggage member in the format of Jaeger's clients (PROP-7). */
  public static final String JAEGER_HEADER = "uberctx-antipode";

  /** The headers that may hold a lineage. */
  public static final List<String> ALL = List.of(BAGGAGE_HEADER, LINEAGE_HEADER, JAEGER_HEADER);

  private static final int MAX_BAGGAGE_BYTES = 8192;
  private static final int MAX_BAGGAGE_MEMBERS = 64;
  private static final int MOST_TEXTS = 16;
  private static final int MOST_OCTETS = 16_384;
  private static final Set<String> FORWARDING = Set.of("x-forwarded-for", "forwarded");

  private Carriers() {}

  /**
   * What headers brought, not yet judged or parsed.
   *
   * @param texts lineage texts; an empty one is a carrier that was there and held nothing: something was lost (WIRE-30)
   * @param isCut whether more came than is read (WIRE-40)
   * @param forwarded the forwarding headers beside them
   */
  public record InboundHeaders(List<String> texts, boolean isCut, List<Header> forwarded) {
    /** No header of ours. */
    public static final InboundHeaders NOTHING = new InboundHeaders(List.of(), false, List.of());

    /** Return whether a lineage came at all. */
    public boolean hasLineage() {
      return isCut || !texts.isEmpty();
    }
  }

  /**
   * In which formats the application propagates its own baggage.
   *
   * @param baggage W3C
   * @param jaeger that of Jaeger's clients
   */
  public record Formats(boolean baggage, boolean jaeger) {
    /** The formats of a propagator that sets these headers. */
    public static Formats of(Iterable<String> fields) {
      boolean baggage = false;
      boolean jaeger = false;
      for (String field : fields) {
        baggage |= field.equalsIgnoreCase(BAGGAGE_HEADER);
        jaeger |= field.equalsIgnoreCase(Gate.JAEGER_TRACE);
      }
      return new Formats(baggage, jaeger);
    }
  }

  /** Finds the lineage texts in raw header lines, each once, and the forwarding headers (PROP-4, PROP-5). */
  public static InboundHeaders read(Iterable<Header> headers) {
    Map<String, List<String>> carriers = new HashMap<>();
    List<Header> forwarded = new ArrayList<>();
    for (Header header : headers) {
      String name = header.name().toLowerCase(Locale.ROOT);
      String value = header.value();
      if (name.equals(BAGGAGE_HEADER)) {
        for (String member : mayHoldOurs(value) ? value.split(",", -1) : new String[0]) {
          if (isOurs(member)) {
            carriers.computeIfAbsent(name, key -> new ArrayList<>()).add(member.substring(member.indexOf('=') + 1));
          }
        }
      } else if (ALL.contains(name)) {
        carriers.computeIfAbsent(name, key -> new ArrayList<>()).add(value);
      } else if (FORWARDING.contains(name)) {
        forwarded.add(new Header(name, value));
      }
    }
    if (carriers.isEmpty() && forwarded.isEmpty()) {
      return InboundHeaders.NOTHING;
    }
    Receipt receipt = new Receipt();
    ALL.forEach(name -> receipt.unwrap(carriers.getOrDefault(name, List.of())));
    return new InboundHeaders(List.copyOf(receipt.texts), receipt.isCut, List.copyOf(forwarded));
  }

  /**
   * The lineage texts in the values of one carrier, made strict: joined lines, white space, properties, escapes
   * (WIRE-28), each once. Empty items are left out; values that hold nothing else give one empty text, which nobody can read
   * (WIRE-30).
   */
  public static InboundHeaders unwrap(Iterable<String> values) {
    Receipt receipt = new Receipt();
    receipt.unwrap(values);
    return new InboundHeaders(List.copyOf(receipt.texts), receipt.isCut, List.of());
  }

  /** Texts as they come, within the bounds of one receipt: what lies beyond is not read (WIRE-40, WIRE-42). */
  private static final class Receipt {
    private final Set<String> texts = new LinkedHashSet<>();
    private int octets;
    private boolean isCut;

    void unwrap(Iterable<String> values) {
      boolean present = false;
      boolean empty = true;
      for (String value : values) {
        present = true;
        for (int from = 0; from <= value.length(); ) { // one by one: what lies beyond a bound is not even divided
          int end = value.indexOf(',', from);
          String item = value.substring(from, end < 0 ? value.length() : end);
          from = end < 0 ? value.length() + 1 : end + 1;
          int properties = item.indexOf(';');
          String text = WireForm.stripped(properties < 0 ? item : item.substring(0, properties));
          if (text.indexOf('%') >= 0) {
            text = WireForm.stripped(percentDecoded(text));
          }
          if (!text.isEmpty()) {
            empty = false;
            add(text);
          }
          if (isCut) {
            return;
          }
        }
      }
      if (present && empty) {
        add("");
      }
    }

    private void add(String text) {
      if (texts.contains(text)) {
        return;
      }
      octets += text.length();
      isCut = texts.size() >= MOST_TEXTS || octets > MOST_OCTETS;
      if (!isCut) {
        texts.add(text);
      }
    }
  }

  /** Each escape as the character of that octet; what is none stays. A plus sign is no space (WIRE-28). */
  private static String percentDecoded(String text) {
    StringBuilder decoded = new StringBuilder();
    for (int place = 0; place < text.length(); place++) {
      char c = text.charAt(place);
      int octet = c == '%' && place + 2 < text.length() ? octet(text.charAt(place + 1), text.charAt(place + 2)) : -1;
      if (octet >= 0) {
        decoded.append((char) octet);
        place += 2;
      } else {
        decoded.append(c);
      }
    }
    return decoded.toString();
  }

  private static int octet(char high, char low) {
    int value = high < 0x80 && low < 0x80 ? Character.digit(high, 16) << 4 | Character.digit(low, 16) : -1;
    return Character.digit(high, 16) < 0 || Character.digit(low, 16) < 0 ? -1 : value;
  }

  private static boolean mayHoldOurs(String baggage) {
    return baggage.contains(BAGGAGE_KEY) || baggage.indexOf('%') >= 0;
  }

  /** Whether a baggage member is the lineage, also where its key is spelled so that a library decodes it. */
  private static boolean isOurs(String member) {
    int equals = member.indexOf('=');
    if (equals < 0) {
      return false;
    }
    String key = WireForm.stripped(member.substring(0, equals));
    return key.equals(BAGGAGE_KEY)
        || key.indexOf('%') >= 0 && percentDecoded(key.replace('+', ' ')).strip().equals(BAGGAGE_KEY);
  }

  /** A baggage line without the lineage; the application's members stay as they are spelled (PROP-10). */
  public static String withoutMember(String baggage) {
    if (!mayHoldOurs(baggage)) {
      return baggage;
    }
    String[] members = baggage.split(",", -1);
    List<String> kept = Arrays.stream(members).filter(member -> !isOurs(member)).toList();
    return kept.size() == members.length ? baggage : WireForm.stripped(String.join(",", kept));
  }

  /** A baggage line with the lineage as its last member; null where that passes a limit (PROP-8, PROP-9). */
  public static String withMember(String baggage, String text) {
    String rest = withoutMember(baggage);
    long members = Arrays.stream(rest.split(",", -1)).filter(member -> !member.isBlank()).count();
    String own = BAGGAGE_KEY + "=" + text;
    String line = members == 0 ? own : rest + "," + own;
    return members + 1 > MAX_BAGGAGE_MEMBERS || utf8Length(line) > MAX_BAGGAGE_BYTES ? null : line;
  }

  private static int utf8Length(String text) {
    return text.codePoints().map(c -> c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4).sum();
  }

  /**
   * The changes that make headers carry this lineage text, and no older one: name to value, null to remove. What stays as
   * it is is not named.
   *
   * @param get gives a header's value by its name, several lines joined by commas, or null
   * @param text null where an older lineage is only taken out
   */
  static Map<String, String> rewrite(UnaryOperator<String> get, String text, Formats formats) {
    Map<String, String> changes = new LinkedHashMap<>();
    String baggage = get.apply(BAGGAGE_HEADER);
    String own = text;
    if (baggage != null) {
      String rest = withoutMember(baggage);
      if (!rest.equals(baggage)) {
        changes.put(BAGGAGE_HEADER, rest.isEmpty() ? null : rest);
      }
    }
    if (text != null && formats.baggage()) {
      String line = withMember(baggage == null ? "" : baggage, text);
      if (line != null) {
        changes.put(BAGGAGE_HEADER, line);
        own = null;
      }
    }
    if (text != null && (formats.jaeger() || get.apply(Gate.JAEGER_TRACE) != null)) {
      changes.put(JAEGER_HEADER, text);
      own = formats.baggage() ? own : null;
    } else if (get.apply(JAEGER_HEADER) != null) {
      changes.put(JAEGER_HEADER, null);
    }
    if (own != null) {
      changes.put(LINEAGE_HEADER, own);
    } else if (get.apply(LINEAGE_HEADER) != null) {
      changes.put(LINEAGE_HEADER, null);
    }
    return changes;
  }
}
