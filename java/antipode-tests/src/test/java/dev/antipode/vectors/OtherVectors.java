package dev.antipode.vectors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.Antipode;
import dev.antipode.ConfigurationException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Reading;
import dev.antipode.Settings;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.shim.Envelope;
import dev.antipode.shim.HybridClock;
import dev.antipode.shim.Setting;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Consumer;

/** What to do with the vectors of configuration, the hybrid clock, the monkey store and the envelope. */
final class OtherVectors {
  static final Map<String, Consumer<Vector>> KINDS = Map.of(
      "configuration", OtherVectors::configuration,
      "configuration-stores", OtherVectors::configurationOfStore,
      "hybrid-clock", OtherVectors::hybridClock,
      "hybrid-clock-place", OtherVectors::hybridClockPlace,
      "monkey-store", OtherVectors::monkeyStore,
      "shim-envelope", OtherVectors::envelope,
      "shim-envelope-broken", OtherVectors::brokenEnvelope);

  private OtherVectors() {}

  private static void configuration(Vector vector) {
    Map<String, String> environment = new HashMap<>();
    vector.get("environment").properties().forEach(each -> environment.put(each.getKey(), each.getValue().asText()));
    try {
      ProcessSettings.environment(environment);
      if (vector.has("error")) {
        assertThatThrownBy(() -> Antipode.configure(code(vector)))
            .isInstanceOf(ConfigurationException.class).hasMessageContaining(vector.text("error"));
        return;
      }
      Antipode.configure(code(vector));
      Map<Setting, Object> found = new HashMap<>();
      ProcessSettings.origins().forEach(each -> found.put(each.setting(), each.value()));
      vector.get("expect").properties().forEach(each ->
          assertThat(plain(found.get(setting(each.getKey())))).as(each.getKey()).isEqualTo(plain(each.getValue())));
      assertThat(ProcessSettings.unknownVariables().keySet())
          .isEqualTo(vector.has("warns") ? Set.of(vector.text("warns")) : Set.of());
    } finally {
      ProcessSettings.environment(null);
    }
  }

  private static Settings code(Vector vector) {
    Settings said = Settings.defaults();
    for (var word : vector.get("code").properties()) {
      said = said.with(setting(word.getKey()), typed(setting(word.getKey()), word.getValue()));
    }
    return said;
  }

  private static Setting setting(String word) {
    return Setting.valueOf(word.toUpperCase(Locale.ROOT));
  }

  private static Object typed(Setting setting, JsonNode value) {
    if (setting.initial() instanceof Duration) {
      return Duration.ofNanos(value.decimalValue().movePointRight(9).longValueExact());
    }
    return value.isBoolean() ? (Object) value.booleanValue() : setting.read(value.asText(), "configure");
  }

  /** Values as the vectors spell them: durations in seconds, words, lists in order. */
  private static Object plain(Object value) {
    if (value instanceof JsonNode json) {
      return json.isArray() ? Vector.texts(json) : json.isNumber() ? number(json.decimalValue()) : json.asText();
    }
    if (value instanceof Duration duration) {
      return number(BigDecimal.valueOf(duration.toNanos(), 9));
    }
    if (value instanceof Number number) {
      return number(new BigDecimal(number.toString()));
    }
    return value instanceof List ? value : value.toString();
  }

  private static BigDecimal number(BigDecimal value) {
    return value.stripTrailingZeros();
  }

  private static void configurationOfStore(Vector vector) {
    try {
      ProcessSettings.environment(Map.of(vector.text("variable"), "redis://b1"));
      assertThat(ProcessSettings.ofStore(vector.text("store")).replicas()).isEqualTo(Optional.of(List.of("redis://b1")));
      assertThat(ProcessSettings.replicasVariable(vector.text("store"))).isEqualTo(vector.text("variable"));
    } finally {
      ProcessSettings.environment(null);
    }
  }

  private static void hybridClock(Vector vector) {
    Instant[] now = {Instant.EPOCH};
    HybridClock clock = HybridClock.ofNode(vector.number("node"), HybridClock.MAX_AHEAD, () -> now[0]);
    Vector.list(vector.get("steps")).forEach(step -> {
      if (step.has("now")) {
        BigDecimal nanos = new BigDecimal(step.get("now").asText());
        BigDecimal[] parts = nanos.divideAndRemainder(BigDecimal.TEN.pow(9));
        now[0] = Instant.ofEpochSecond(parts[0].longValueExact(), parts[1].longValueExact());
      }
      if (step.has("next")) {
        assertThat(clock.next()).isEqualTo(Long.parseUnsignedLong(step.get("next").asText()));
      } else if (step.has("observe")) {
        assertThat(clock.observe(Long.parseUnsignedLong(step.get("observe").asText())))
            .isEqualTo(step.get("adopted").asBoolean());
      } else {
        OptionalLong gives = step.get("gives").isNull()
            ? OptionalLong.empty()
            : OptionalLong.of(Long.parseUnsignedLong(step.get("gives").asText()));
        assertThat(clock.above(Long.parseUnsignedLong(step.get("above").asText()))).isEqualTo(gives);
      }
    });
  }

  private static void hybridClockPlace(Vector vector) {
    assertThat(HybridClock.placeNumber(vector.text("region"))).isEqualTo(vector.number("place"));
  }

  private static void monkeyStore(Vector vector) {
    List<String> regions = Vector.texts(vector.get("regions"));
    MemoryStore store = MemoryStore.named("s")
        .regions(regions.toArray(String[]::new))
        .versions(Versions.valueOf(vector.text("versions").toUpperCase(Locale.ROOT)))
        .monkey(Long.parseUnsignedLong(vector.text("seed")));
    Map<String, MemoryClient> clients = new HashMap<>();
    regions.forEach(region -> clients.put(region, store.client(region)));
    MemoryClient primary = clients.get(regions.get(0));
    Antipode.configure(Antipode.settings().timeout(Duration.ofSeconds(20)));
    try (LineageScope scope = Antipode.scope()) {
      for (JsonNode step : vector.get("steps")) {
        if (step.has("set")) {
          primary.set(step.get("set").asText(), step.get("value").asText());
        } else if (step.has("delete")) {
          primary.delete(step.get("delete").asText());
        } else if (step.has("barrier")) {
          assertThat(Antipode.barrier().satisfied()).isTrue();
        } else {
          String value = step.hasNonNull("value") ? step.get("value").asText() : null;
          Lineage after = step.has("waits") ? scope.lineage() : Lineage.EMPTY;
          try (Reading seen = Antipode.reading(after)) {
            assertThat(clients.get(step.get("at").asText()).get(step.get("get").asText())).isEqualTo(value);
          }
        }
      }
    }
  }

  private static void envelope(Vector vector) {
    byte[] value = vector.octets("value_hex");
    byte[] closed = vector.octets("octets_hex");
    String text = vector.text("text");
    assertThat(Envelope.close(value, text == null ? "" : text)).isEqualTo(closed);
    Envelope.OpenedEnvelope opened = Envelope.open(closed);
    assertThat(opened.value()).isEqualTo(value);
    assertThat("".equals(opened.text()) ? null : opened.text()).isEqualTo(text);
    assertThat(opened.fault()).isEmpty();
  }

  private static void brokenEnvelope(Vector vector) {
    byte[] octets = vector.octets("octets_hex");
    Envelope.OpenedEnvelope opened = Envelope.open(octets);
    assertThat(opened.value()).isEqualTo(octets);
    assertThat(opened.text()).isNull();
    assertThat(opened.fault()).isNotEmpty();
  }
}
