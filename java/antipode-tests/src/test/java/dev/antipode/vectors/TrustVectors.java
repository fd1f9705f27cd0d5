package dev.antipode.vectors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.ConfigurationException;
import dev.antipode.Keys;
import dev.antipode.Trust;
import dev.antipode.internal.trust.Addresses;
import dev.antipode.internal.trust.Decision;
import dev.antipode.internal.trust.Judgement;
import dev.antipode.internal.trust.Peers;
import dev.antipode.internal.trust.Purpose;
import dev.antipode.internal.trust.Reason;
import dev.antipode.internal.trust.Seal;
import dev.antipode.internal.trust.TrustSettings;
import dev.antipode.propagation.Caller;
import dev.antipode.propagation.Header;
import java.time.Duration;
import java.time.Instant;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/** What to do with the vectors of trust. */
final class TrustVectors {
  static final Map<String, Consumer<Vector>> KINDS = Map.of(
      "trust-addresses", TrustVectors::address,
      "trust-peers", TrustVectors::peer,
      "trust-request-in", TrustVectors::requestIn,
      "trust-hosts", TrustVectors::host,
      "trust-seal", TrustVectors::verify,
      "trust-seal-make", TrustVectors::seal,
      "trust-keys-file", TrustVectors::keysFile);

  private static final Map<Reason, String> BECAUSE =
      Map.of(
      Reason.PEER, "peer", Reason.RESOLVED, "peer", Reason.UNSEEN, "peer",
      Reason.EDGE, "edge", Reason.OFF, "none", Reason.SEAL, "seal");

  private TrustVectors() {}

  private static TrustSettings settings(JsonNode words) {
    Trust trust = Trust.valueOf(words.path("trust").asText("private").toUpperCase(Locale.ROOT));
    return new TrustSettings(
        trust,
        words.path("edge").asBoolean(false),
        words.path("forwarded").asText("").equals("ignore"),
        false,
        Peers.of(Vector.texts(words.path("peers"))),
        trust == Trust.KEY ? Keys.of(Map.of("k", new byte[16])) : Keys.NONE,
        Duration.ofSeconds(300),
        Duration.ZERO);
  }

  private static Decision requestIn(String peer, List<Header> headers, TrustSettings trust) {
    return requestIn(Caller.of(peer, headers), trust);
  }

  private static Decision requestIn(Caller caller, TrustSettings trust) {
    return Judgement.requestIn(Judgement.responseOut(caller, trust), "1", trust, Instant.EPOCH);
  }

  private static void address(Vector vector) {
    String text = vector.text("text");
    assertThat(Addresses.isPrivatePeer(text, false)).isEqualTo(vector.flag("private"));
    // White space around and the empty text are no elements of a list; a peer they may be.
    if (!text.isBlank() && text.indexOf(',') < 0) {
      List<Header> headers = List.of(new Header("X-Forwarded-For", text));
      assertThat(requestIn("::1", headers, settings(vector.json())).accepted()).isEqualTo(vector.flag("private"));
    }
  }

  private static void peer(Vector vector) {
    boolean byUnix = vector.has("unix") && vector.flag("unix");
    assertThat(Addresses.isPrivatePeer(vector.text("peer"), byUnix)).isEqualTo(vector.flag("private"));
  }

  private static void requestIn(Vector vector) {
    List<Header> headers = Vector.list(vector.get("headers"))
        .map(header -> new Header(header.get(0).asText(), header.get(1).asText()))
        .toList();
    List<String> shown = vector.has("resolved") ? List.of(vector.text("resolved")) : List.of();
    Caller caller = new Caller(vector.text("peer"), true, headers, shown);
    Decision decision = requestIn(caller, settings(vector.get("settings")));
    assertThat(decision.accepted()).isEqualTo(vector.flag("accept"));
    String header = decision.about().startsWith("more than") ? "too long" : decision.header().toLowerCase(Locale.ROOT);
    String because = decision.header().isEmpty() ? BECAUSE.get(decision.reason()) : header;
    assertThat(because).isEqualTo(vector.text("because"));
  }

  private static void host(Vector vector) {
    if (vector.has("error")) {
      assertThatThrownBy(() -> settings(vector.get("settings"))).isInstanceOf(ConfigurationException.class);
      return;
    }
    TrustSettings trust = settings(vector.get("settings"));
    assertThat(Judgement.requestOut(vector.text("host"), trust).accepted()).isEqualTo(vector.flag("approved"));
  }

  private static Keys keys(Vector vector) {
    Map<String, byte[]> keys = new LinkedHashMap<>();
    Vector.list(vector.get("keys")).forEach(
        key -> keys.put(key.get("id").asText(), HexFormat.of().parseHex(key.get("key_hex").asText())));
    return Keys.of(keys);
  }

  private static Purpose purpose(Vector vector) {
    return Purpose.valueOf(vector.text("purpose").toUpperCase(Locale.ROOT));
  }

  /** Seconds with a fraction. */
  private static Instant now(Vector vector) {
    return Instant.ofEpochMilli(Math.round(vector.get("now").asDouble() * 1000));
  }

  private static void seal(Vector vector) {
    Duration ttl = Duration.ofMillis(Math.round(vector.get("ttl").asDouble() * 1000));
    assertThat(Seal.seal(vector.text("text"), keys(vector), purpose(vector), now(vector), ttl)).isEqualTo(vector.text("sealed"));
  }

  private static void verify(Vector vector) {
    Seal.OpenedSeal opened = Seal.open(vector.text("text"), keys(vector), purpose(vector), now(vector));
    assertThat(opened.state().word()).isEqualTo(vector.text("state"));
    if (opened.state() == Seal.State.VALID || opened.state() == Seal.State.EXPIRED) {
      assertThat(opened.text()).isEqualTo(vector.text("body"));
    }
  }

  private static void keysFile(Vector vector) {
    if (vector.has("error")) {
      assertThatThrownBy(() -> Keys.parse(vector.text("file"), "keys")).isInstanceOf(ConfigurationException.class);
    } else {
      assertThat(Keys.parse(vector.text("file"), "keys").ids()).isEqualTo(Vector.texts(vector.get("ids")));
    }
  }
}
