package dev.antipode.internal.trust;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.ConfigurationException;
import dev.antipode.Forwarded;
import dev.antipode.Keys;
import dev.antipode.Observed;
import dev.antipode.Settings;
import dev.antipode.Trust;
import dev.antipode.propagation.Caller;
import dev.antipode.propagation.Header;
import dev.antipode.testing.Isolated;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.lifecycle.AfterTry;
import net.jqwik.api.lifecycle.BeforeTry;

/** Trust: the table, seals, and what is said (TRUST-1 to TRUST-31). The lists of addresses and hosts are vectors. */
class TrustTest {
  private static final String TEXT = "1~posts..e.1";
  private static final Instant NOW = Instant.ofEpochSecond(1_700_000_000);
  private static final Keys KEYS = keys("one", "two");
  private static final TrustSettings PRIVATE = trust(Trust.PRIVATE, false);
  private static final TrustSettings KEY = trust(Trust.KEY, false);
  private static final String SEALED = Seal.seal(TEXT, KEYS, Purpose.REQUEST, NOW, Duration.ofSeconds(300));
  private static final List<Header> OUTSIDE = List.of(new Header("x-forwarded-for", "203.0.113.9"));
  private static final String INSIDE = "10.0.0.7";

  private Isolated isolated;

  private static Keys keys(String... ids) {
    Map<String, byte[]> keys = new LinkedHashMap<>();
    for (String id : ids) {
      keys.put(id, (id + "0123456789abcdef").getBytes());
    }
    return Keys.of(keys);
  }

  private static TrustSettings trust(Trust trust, boolean edge) {
    return new TrustSettings(trust, edge, false, false, Peers.NONE, KEYS, Duration.ofSeconds(300), Duration.ZERO);
  }

  @BeforeTry
  void isolate() {
    isolated = new Isolated();
  }

  @AfterTry
  void end() {
    isolated.close();
  }

  /** TRUST-3, TRUST-4, TRUST-31: request in, request out, response in, response out, message in, message out. */
  @Example
  void theTableHolds() {
    assertThat(row(PRIVATE, TEXT, INSIDE, "b")).isEqualTo("yes yes yes yes yes yes");
    assertThat(row(PRIVATE, TEXT, "203.0.113.9", "example.com")).isEqualTo("no no no no yes yes");
    assertThat(row(trust(Trust.ALL, false), TEXT, "203.0.113.9", "example.com")).isEqualTo("yes yes yes yes yes yes");
    assertThat(row(trust(Trust.NONE, false), TEXT, INSIDE, "b")).isEqualTo("no no no no no no");
    assertThat(row(KEY, TEXT, INSIDE, "b")).isEqualTo("no yes no yes no yes");
    assertThat(row(KEY, SEALED, "203.0.113.9", "example.com")).isEqualTo("yes no yes no yes yes");
    assertThat(row(trust(Trust.PRIVATE, true), TEXT, INSIDE, "b")).isEqualTo("no yes yes no no yes");
    assertThat(row(trust(Trust.ALL, true), TEXT, INSIDE, "example.com")).isEqualTo("no no no no no yes");
    assertThat(row(trust(Trust.KEY, true), SEALED, INSIDE, "example.com")).isEqualTo("no no no no no yes");
    assertThat(Judgement.messageIn(TEXT, trust(Trust.PRIVATE, true), true, NOW).accepted()).isTrue();
    assertThat(Judgement.messageIn(TEXT, PRIVATE, false, NOW).reason()).isEqualTo(Reason.OPTION);
    assertThat(Judgement.messageOut(PRIVATE, false).reason()).isEqualTo(Reason.OPTION);
    assertThat(PRIVATE.atEdge(true).edge()).isTrue();
    assertThat(trust(Trust.PRIVATE, true).atEdge(false).edge()).isTrue();
  }

  private static String row(TrustSettings trust, String text, String peer, String host) {
    List<Boolean> cells = List.of(
        requestIn(peer, List.of(), text, trust).accepted(),
        Judgement.requestOut(host, trust).accepted(),
        Judgement.responseIn(host, sealedFor(Purpose.RESPONSE, text), trust, NOW).accepted(),
        Judgement.responseOut(Caller.of(peer, List.of()), trust).accepted(),
        Judgement.messageIn(sealedFor(Purpose.MESSAGE, text), trust, null, NOW).accepted(),
        Judgement.messageOut(trust, null).accepted());
    List<String> words = new ArrayList<>();
    cells.forEach(cell -> words.add(cell ? "yes" : "no"));
    return String.join(" ", words);
  }

  private static String sealedFor(Purpose purpose, String text) {
    return text.equals(SEALED) ? Judgement.outgoing(TEXT, KEY, purpose, NOW) : text;
  }

  private static Decision requestIn(String peer, List<Header> forwarded, String text, TrustSettings trust) {
    return Judgement.requestIn(Judgement.responseOut(Caller.of(peer, forwarded), trust), text, trust, NOW);
  }

  /** TRUST-32: past the bounds nothing is parsed; at them it is. */
  @Example
  void manyHopsArePublic() {
    for (String name : List.of("X-Forwarded-For", "Forwarded")) {
      String hop = name.equals("Forwarded") ? "for=10.0.0.1" : "10.0.0.1";
      List<Header> half = List.of(new Header(name, String.join(",", Collections.nCopies(32, hop))));
      List<Header> most = List.of(half.get(0), half.get(0));
      assertThat(requestIn(INSIDE, most, TEXT, PRIVATE).accepted()).isTrue();
      Header one = new Header("x-forwarded-for", "10.0.0.1");
      assertThat(requestIn(INSIDE, List.of(half.get(0), one, half.get(0)), TEXT, PRIVATE).reason())
          .isEqualTo(Reason.FORWARDED);
      Header spaces = new Header(name, hop + " ".repeat(4096 - hop.length()));
      assertThat(requestIn(INSIDE, List.of(spaces), TEXT, PRIVATE).accepted()).isTrue();
      assertThat(requestIn(INSIDE, List.of(spaces, one), TEXT, PRIVATE).reason()).isEqualTo(Reason.FORWARDED);
    }
  }

  /** TRUST-33, TRUST-13: an address in the peer's place is judged, and believed only where a header that is judged names it. */
  @Example
  void theInnermostPeerIsJudged() {
    TrustSettings ignoring = new TrustSettings(
        Trust.PRIVATE, false, true, false, Peers.NONE, KEYS, Duration.ofSeconds(300), Duration.ZERO);
    List<Header> named = List.of(new Header("X-Forwarded-For", "\"10.0.0.1:80\""));
    for (TrustSettings trust : List.of(PRIVATE, ignoring)) {
      assertThat(reason(true, named, "10.0.0.1", trust)).isEqualTo(Reason.NONE);
      assertThat(reason(true, List.of(), INSIDE, trust)).isEqualTo(Reason.NONE);
      assertThat(reason(true, List.of(), "10.0.0.1", trust)).isEqualTo(Reason.UNSEEN);
      assertThat(reason(true, List.of(), "203.0.113.9", trust)).isEqualTo(Reason.RESOLVED);
      assertThat(reason(false, named, INSIDE, trust)).isEqualTo(Reason.NONE);
      assertThat(reason(false, List.of(new Header("forwarded", "for=10.0.0.7")), INSIDE, trust))
          .isEqualTo(Reason.UNSEEN);
    }
    List<Header> many = List.of(new Header("X-Forwarded-For", "10.0.0.7,".repeat(65)));
    assertThat(reason(false, many, INSIDE, ignoring)).isEqualTo(Reason.UNSEEN);
    assertThat(reason(true, many, INSIDE, ignoring)).isEqualTo(Reason.NONE);
  }

  private static Reason reason(boolean certain, List<Header> forwarded, String shown, TrustSettings trust) {
    return Judgement.responseOut(new Caller(INSIDE, certain, forwarded, List.of(shown)), trust).reason();
  }

  /** TRUST-13. */
  @Example
  void forwardedMayBeIgnored() {
    assertThat(requestIn(INSIDE, OUTSIDE, TEXT, PRIVATE).reason()).isEqualTo(Reason.FORWARDED);
    assertThat(Judgement.responseOut(Caller.of(INSIDE, OUTSIDE), PRIVATE).accepted()).isFalse();
    Antipode.configure(Settings.defaults().forwarded(Forwarded.IGNORE).peers(".example.org"));
    TrustSettings now = TrustSettings.inForce();
    assertThat(now).isSameAs(TrustSettings.inForce());
    assertThat(requestIn(INSIDE, OUTSIDE, TEXT, now).accepted()).isTrue();
    assertThat(Judgement.requestOut("a.example.org", now).accepted()).isTrue();
  }

  /** TRUST-16. */
  @Property
  void aBadPeerIsAConfigurationError(@ForAll("badPeers") String item) {
    assertThatThrownBy(() -> Peers.of(List.of(item)))
        .isInstanceOf(ConfigurationException.class).hasMessageContaining("ANTIPODE_PEERS");
  }

  @Provide
  Arbitrary<String> badPeers() {
    return Arbitraries.of("", ".", "a b", "10.0.0.0/33", "10.0.0.1/8", "*.example.com", "http://a", "a/b", "10.0.0.0/");
  }

  /** TRUST-8, TRUST-12, TRUST-17: nothing that stands in a header or is a host throws. */
  @Property(tries = 500)
  void anyTextIsJudged(@ForAll String text, @ForAll("likely") String likely) {
    for (String each : List.of(text, likely)) {
      Addresses.isPrivatePeer(each, false);
      Addresses.hops(List.of(new Header("Forwarded", each), new Header("X-Forwarded-For", each)));
      Judgement.requestOut(each, PRIVATE);
      Seal.strip(each);
      assertThat(Seal.open(each, KEYS, Purpose.REQUEST, NOW).state()).isNotEqualTo(Seal.State.VALID);
    }
  }

  @Provide
  Arbitrary<String> likely() {
    return Arbitraries.of("for=", "by", "10.0.0.1", "[", "]", "::1", ":", "\"", "\\", ";", ",", " ", "%", "1", "~_.h", ".",
        "203.0.113.9", "_hidden", "=", "\t").list().ofMaxSize(10).map(parts -> String.join("", parts));
  }

  // Seals

  /** TRUST-18, TRUST-21, TRUST-23: what leaves under key is sealed, and a seal is replaced. */
  @Example
  void whatLeavesUnderKeyIsSealed() {
    assertThat(Judgement.outgoing(TEXT, KEY, Purpose.REQUEST, NOW)).isEqualTo(SEALED);
    assertThat(Judgement.outgoing(TEXT, PRIVATE, Purpose.REQUEST, NOW)).isEqualTo(TEXT);
    assertThat(KEY.sealLength()).isEqualTo(SEALED.length() - TEXT.length());
    assertThat(PRIVATE.sealLength()).isZero();
    assertThat(Seal.seal(SEALED, KEYS, Purpose.REQUEST, NOW, Duration.ofSeconds(300))).isEqualTo(SEALED);
    assertThatThrownBy(() -> Seal.seal(TEXT, Keys.NONE, Purpose.REQUEST, NOW, Duration.ofSeconds(300)))
        .isInstanceOf(ConfigurationException.class).hasMessageContaining("ANTIPODE_KEYS_FILE");
  }

  /** TRUST-20, TRUST-22: the first key signs, all verify, until it expires. */
  @Example
  void allKeysVerifyUntilTheSealExpires() {
    Keys rotated = keys("two", "one");
    assertThat(Seal.open(SEALED, rotated, Purpose.REQUEST, NOW)).isEqualTo(new Seal.OpenedSeal(TEXT, Seal.State.VALID));
    assertThat(Seal.open(SEALED, rotated, Purpose.REQUEST, NOW.plusSeconds(329)).state()).isEqualTo(Seal.State.VALID);
    assertThat(Seal.open(SEALED, rotated, Purpose.REQUEST, NOW.plusSeconds(330)).state()).isEqualTo(Seal.State.EXPIRED);
    assertThat(Seal.open(SEALED, keys("three"), Purpose.REQUEST, NOW).state()).isEqualTo(Seal.State.UNKNOWN_KEY);
  }

  /** TRUST-21, TRUST-36: what is sealed for a message or value is no request, and lives as long as its key. */
  @Example
  void aSealIsForOnePurpose() {
    for (Purpose purpose : Purpose.values()) {
      String sealed = Judgement.outgoing(TEXT, KEY, purpose, NOW);
      Instant later = NOW.plusSeconds(1_000_000);
      boolean rests = purpose == Purpose.MESSAGE || purpose == Purpose.VALUE;
      for (Purpose other : Purpose.values()) {
        Seal.State state = Seal.open(sealed, KEYS, other, later).state();
        assertThat(state).isEqualTo(other != purpose ? Seal.State.BAD : rests ? Seal.State.VALID : Seal.State.EXPIRED);
      }
      assertThat(requestIn(INSIDE, List.of(), sealed, KEY).accepted()).isEqualTo(purpose == Purpose.REQUEST);
      assertThat(Judgement.responseIn("b", sealed, KEY, NOW).accepted()).isEqualTo(purpose == Purpose.RESPONSE);
      assertThat(Judgement.messageIn(sealed, KEY, null, NOW).accepted()).isEqualTo(purpose == Purpose.MESSAGE);
      assertThat(Judgement.valueIn(sealed, KEY, NOW).accepted()).isEqualTo(purpose == Purpose.VALUE);
    }
  }

  /** TRUST-37: genuine and expired: taken, and said. */
  @Example
  void anExpiredSealIsTakenAndSaid() {
    Decision decision = Judgement.requestIn(Decision.YES, SEALED, KEY, NOW.plusSeconds(1000));
    assertThat(decision.accepted()).isTrue();
    assertThat(decision.text()).isEqualTo(TEXT);
    assertThat(decision.reason()).isEqualTo(Reason.EXPIRED);
  }

  /** TRUST-19, TRUST-20: no single character can be changed. */
  @Property(tries = 300)
  void noCharacterCanBeChanged(@ForAll int place, @ForAll char other) {
    int at = Math.floorMod(place, SEALED.length());
    String changed = SEALED.substring(0, at) + other + SEALED.substring(at + 1);
    if (!changed.equals(SEALED)) {
      assertThat(Seal.open(changed, KEYS, Purpose.REQUEST, NOW).state()).isNotEqualTo(Seal.State.VALID);
    }
  }

  /** TRUST-23: dropped unread where trust is not key. */
  @Example
  void aSealIsTakenOffWhereTrustIsNotKey() {
    for (TrustSettings trust : List.of(PRIVATE, trust(Trust.ALL, false))) {
      assertThat(requestIn(INSIDE, List.of(), SEALED, trust).text()).isEqualTo(TEXT);
      assertThat(Judgement.responseIn("b", SEALED, trust, NOW).text()).isEqualTo(TEXT);
      assertThat(Judgement.messageIn(SEALED, trust, null, NOW).text()).isEqualTo(TEXT);
    }
  }

  /** TRUST-22: the file's name and line, never the key. */
  @Property
  void aBadKeysFileIsNamed(@ForAll("badKeys") String file) {
    assertThatThrownBy(() -> Keys.parse(file, "/etc/keys")).isInstanceOf(ConfigurationException.class)
        .hasMessageStartingWith("/etc/keys").hasMessageNotContaining("c2hvcnQ");
  }

  @Provide
  Arbitrary<String> badKeys() {
    String good = "MDEyMzQ1Njc4OWFiY2RlZg==";
    return Arbitraries.of("", "# nothing\n", "one", "one " + good + " x", "one c2hvcnQ=", "one !", "one " + good + "=",
        "one " + good + "\none " + good, "x".repeat(33) + " " + good, "one " + good.replace("=", ""));
  }

  // What is said

  /** TRUST-27, OBS-7: the words of the documentation, once a minute. */
  @Example
  void oneLineAMinuteNamesTheSetting() {
    Decision decision = requestIn(INSIDE, OUTSIDE, TEXT, PRIVATE);
    try (Observed observed = new Observed()) {
      for (int i = 0; i < 5; i++) {
        TrustLog.report(decision, Direction.REQUEST_IN, "");
      }
      assertThat(observed.lines()).containsExactly(
          "dropped a lineage from 203.0.113.9 (request in): X-Forwarded-For has a public address. If this is the edge "
              + "set ANTIPODE_EDGE=true; if applications copy that header inside, ANTIPODE_FORWARDED=ignore. [AP403] dropped=1");
      assertThat(observed.count(
          "antipode.lineage.dropped", Map.of("reason", "untrusted", "direction", "request_in"))).isEqualTo(5);
    }
  }

  /** TRUST-29; what the operator asked for is counted and not logged. */
  @Example
  void aRefusedHostIsNamed() {
    try (Observed observed = new Observed()) {
      TrustLog.report(Judgement.requestOut("api.example.com", PRIVATE), Direction.REQUEST_OUT, "");
      assertThat(observed.lines()).singleElement().asString()
          .contains("did not send a lineage to api.example.com (request out)").contains("ANTIPODE_PEERS");
      TrustLog.report(Decision.no(Reason.EDGE), Direction.REQUEST_IN, "");
      TrustLog.report(Decision.no(Reason.OFF), Direction.MESSAGE_IN, "");
      assertThat(observed.lines()).hasSize(1);
    }
  }

  /** TRUST-20, TRUST-27; OBS-7: no control character from outside, and short. */
  @Example
  void theLogIsPrintable() {
    try (Observed observed = new Observed()) {
      Header line = new Header("x-forwarded-for", "\u001b[31mroot\r\n" + "x".repeat(900));
      TrustLog.report(requestIn(INSIDE, List.of(line), TEXT, PRIVATE), Direction.REQUEST_IN, "");
      TrustLog.report(requestIn(INSIDE, List.of(), TEXT, KEY), Direction.REQUEST_IN, "10.1.2.3");
      assertThat(observed.lines()).hasSize(2).allMatch(text -> text.matches("\\p{Print}{1,400}"));
      assertThat(observed.linesWith("it has no seal")).first().asString().contains("10.1.2.3").contains("ANTIPODE_KEYS_FILE");
    }
  }

  /** OBS-3: the words of directions. */
  @Example
  void directionsHaveTheirWords() {
    List<String> words = new ArrayList<>();
    for (Direction direction : Direction.values()) {
      words.add(direction.word());
    }
    assertThat(words).containsExactly(
        "request_in", "request_out", "response_in", "response_out", "message_in", "message_out", "message_in", "message_out");
  }

  /** TRUST-30: the sender says that the receiver will drop it. */
  @Example
  void theSenderSaysThatTheReceiverWillDropIt() {
    try (Observed observed = new Observed()) {
      TrustLog.warnOfForwarded("b", OUTSIDE, trust(Trust.ALL, false));
      TrustLog.warnOfForwarded("b", List.of(), PRIVATE);
      assertThat(observed.lines()).isEmpty();
      TrustLog.warnOfForwarded("b", OUTSIDE, PRIVATE);
      assertThat(observed.lines()).singleElement().asString().contains("ANTIPODE_FORWARDED").endsWith("sent=1");
    }
  }
}
