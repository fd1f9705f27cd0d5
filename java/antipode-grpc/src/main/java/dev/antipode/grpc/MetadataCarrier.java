package dev.antipode.grpc;

import dev.antipode.propagation.Carriers;
import dev.antipode.propagation.Header;
import dev.antipode.propagation.HeaderCarrier;
import io.grpc.Metadata;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A call's metadata as headers. Only the names that matter here are looked at: those of others may be such that no key can be
 * made of them.
 */
record MetadataCarrier(Metadata metadata) implements HeaderCarrier {
  private static final Map<String, Metadata.Key<String>> KEYS = keys();

  private static Map<String, Metadata.Key<String>> keys() {
    List<String> names = new ArrayList<>(Carriers.ALL);
    names.addAll(List.of("x-forwarded-for", "forwarded"));
    Map<String, Metadata.Key<String>> keys = new LinkedHashMap<>();
    names.forEach(name -> keys.put(name, Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER)));
    return keys;
  }

  /** A copy of what an application gave: it may give the same to other calls. */
  static MetadataCarrier copyOf(Metadata given) {
    Metadata copy = new Metadata();
    copy.merge(given);
    return new MetadataCarrier(copy);
  }

  @Override
  public Iterable<Header> lines() {
    List<Header> lines = new ArrayList<>();
    KEYS.forEach((name, key) -> {
      Iterable<String> values = metadata.getAll(key);
      if (values != null) {
        values.forEach(value -> lines.add(new Header(name, value)));
      }
    });
    return lines;
  }

  @Override
  public void set(String name, String value) {
    metadata.removeAll(KEYS.get(name));
    metadata.put(KEYS.get(name), value);
  }

  @Override
  public void remove(String name) {
    metadata.removeAll(KEYS.get(name));
  }

  /** Takes the lineage out; the application's baggage stays as it is spelled (TRUST-5, PROP-10). */
  void strip() {
    String baggage = get(Carriers.BAGGAGE_HEADER);
    if (baggage != null) {
      String rest = Carriers.withoutMember(baggage);
      if (rest.isEmpty()) {
        remove(Carriers.BAGGAGE_HEADER);
      } else if (!rest.equals(baggage)) {
        set(Carriers.BAGGAGE_HEADER, rest);
      }
    }
    for (String name : List.of(Carriers.LINEAGE_HEADER, Carriers.JAEGER_HEADER)) {
      remove(name);
    }
  }

  /** The lineages that a server sent back. */
  List<String> lineages() {
    Iterable<String> values = metadata.getAll(KEYS.get(Carriers.LINEAGE_HEADER));
    List<String> lineages = new ArrayList<>();
    if (values != null) {
      values.forEach(lineages::add);
    }
    return lineages;
  }
}
