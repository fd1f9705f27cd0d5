package dev.antipode.propagation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierResult;
import dev.antipode.Gap;
import dev.antipode.Keys;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Observed;
import dev.antipode.OnPending;
import dev.antipode.Ordered;
import dev.antipode.PendingWriteException;
import dev.antipode.Policy;
import dev.antipode.Settings;
import dev.antipode.Trust;
import dev.antipode.WriteId;
import dev.antipode.memory.MemoryStore;
import dev.antipode.propagation.Carriers.Formats;
import dev.antipode.shim.PendingWrite;
import dev.antipode.testing.AntipodeIsolated;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.context.propagation.ContextPropagators;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The four functions: limits, pending writes, modes, what is lost (PROP-1 to PROP-6, PROP-8 to PROP-14). */
@ExtendWith(AntipodeIsolated.class)
class PropagationTest {
  private static final String EPOCH = "8371ab90c2d4e6f1";
  private static final WriteId BEFORE = WriteId.position("blog-posts", EPOCH, 1042);
  private static final WriteId AFTER = WriteId.position("user-acl", EPOCH, 57);
  private static final String TEXT = Lineage.of(BEFORE).serialize();
  private static final String ANSWER = Lineage.of(AFTER).serialize();

  @BeforeEach
  void baggageIsPropagated() {
    GlobalOpenTelemetry.resetForTest();
    GlobalOpenTelemetry.set(
        OpenTelemetry.propagating(ContextPropagators.create(W3CBaggagePropagator.getInstance())));
  }

  @AfterEach
  void nothingIs() {
    GlobalOpenTelemetry.resetForTest();
  }

  /** What a request to a host has for headers when it leaves. */
  static Map<String, String> sent(String host, Map<String, String> headers) {
    Map<String, String> changed = new LinkedHashMap<>(headers);
    Propagation.injectRequest(HeaderCarrier.of(changed), host);
    return changed;
  }

  private static Map<String, String> sent() {
    return sent("b", Map.of());
  }

  private static RequestScope request(Map<String, String> headers) {
    return Propagation.extractRequest(HeaderCarrier.of(headers), "10.0.0.1");
  }

  private static Map<String, String> answer(Map<String, String> headers) {
    return answer(headers, SharedCaches.ANY_STATUS);
  }

  private static Map<String, String> answer(Map<String, String> headers, int status) {
    Map<String, String> changed = new HashMap<>(headers);
    Propagation.injectResponse(HeaderCarrier.of(changed), SharedCaches.ANY_METHOD, status);
    return changed;
  }

  /** PROP-1, PROP-8, PROP-13, PROP-14. */
  @Test
  void thereAndBackByHand() {
    try (LineageScope mine = Antipode.scope()) {
      Antipode.append(BEFORE);
      Map<String, String> request = sent();
      assertThat(request).isEqualTo(Map.of("baggage", "antipode=" + TEXT));
      Map<String, String> response;
      try (RequestScope theirs = request(request)) {
        assertThat(LineageScope.current()).isSameAs(theirs.scope());
        assertThat(theirs.scope().lineage()).isEqualTo(mine.lineage());
        assertThat(answer(Map.of())).isEmpty();
        Antipode.append(AFTER);
        response = answer(Map.of());
      }
      assertThat(response).isEqualTo(Map.of("antipode-lineage", ANSWER));
      assertThat(LineageScope.current()).isSameAs(mine);
      Propagation.extractResponse(HeaderCarrier.of(response), "b");
      assertThat(mine.lineage()).isEqualTo(Lineage.of(BEFORE, AFTER));
    }
  }

  /** SCOPE-3. */
  @Test
  void theScopeEndsWithTheRequest() {
    LineageScope seen;
    try (RequestScope request = request(Map.of())) {
      seen = request.scope();
    }
    assertThat(seen.isClosed()).isTrue();
    assertThat(LineageScope.current()).isNull();
    assertThat(answer(Map.of())).isEmpty(); // outside any request
  }

  /** PROP-2, PROP-5: names in any case, several lines. */
  @Test
  void linesAndNamesInAnyCase() {
    Map<String, List<String>> headers = new HashMap<>();
    headers.put(null, List.of("HTTP/1.1 200"));
    headers.put("Baggage", List.of("user=7", "antipode=" + TEXT));
    headers.put("ANTIPODE-Lineage", List.of(" " + ANSWER + " ;x=1"));
    try (RequestScope request = Propagation.extractRequest(HeaderCarrier.ofLists(headers), "127.0.0.1")) {
      assertThat(request.scope().lineage()).isEqualTo(Lineage.of(BEFORE, AFTER));
      Map<String, List<String>> out = new HashMap<>(Map.of("BAGGAGE", List.of("a=1", "b=2")));
      assertThat(Propagation.injectRequest(HeaderCarrier.ofLists(out), "b")).isTrue();
      assertThat(out).isEqualTo(
          Map.of("BAGGAGE", List.of("a=1,b=2,antipode=" + Lineage.of(BEFORE, AFTER).serialize())));
    }
  }

  /** WIRE-25, WIRE-29, PROP-12: incomplete, not empty; and it does not come home with the response. */
  @Test
  void whatCannotBeReadIsIncomplete() {
    try (Observed observed = new Observed();
        RequestScope request = request(Map.of("baggage", "antipode=hello,antipode=" + TEXT))) {
      assertThat(request.scope().lineage()).isEqualTo(Lineage.of(BEFORE));
      assertThat(request.scope().lineage().isComplete()).isFalse();
      assertThat(request.scope().gaps()).extracting(Gap::reason).containsExactly("malformed");
      assertThat(answer(Map.of())).isEmpty();
      assertThat(observed.linesWith("10.0.0.1")).hasSize(1);
      assertThat(observed.count("antipode.lineage.dropped", Map.of("reason", "malformed"))).isEqualTo(1);
      Propagation.extractResponse(HeaderCarrier.of(Map.of("antipode-lineage", "hello")), "b");
      assertThat(request.scope().gaps()).hasSize(2);
    }
  }

  /** PROP-14, TRUST-3, TRUST-27, TRUST-28: dropped, and complete all the same. */
  @Test
  void aResponseFromAHostThatIsNotOursIsDropped() {
    try (Observed observed = new Observed()) {
      try (LineageScope scope = Antipode.scope()) {
        Propagation.extractResponse(HeaderCarrier.of(Map.of("antipode-lineage", TEXT)), "api.example.com");
        assertThat(scope.lineage().hasContent()).isFalse();
        assertThat(scope.gaps()).extracting(Gap::reason).containsExactly("untrusted");
      }
      Propagation.extractResponse(HeaderCarrier.of(Map.of("antipode-lineage", TEXT)), "b");
      assertThat(observed.linesWith("outside any scope")).hasSize(1); // SCOPE-9
    }
  }

  /** TRUST-28: under key an unsealed lineage leaves the scope incomplete. */
  @Test
  void underKeyTheSealIsNeeded() {
    Antipode.configure(Settings.defaults().budgetBytes(110).keys(Keys.of(Map.of("one", new byte[32]))));
    Map<String, String> sealed;
    try (LineageScope scope = Antipode.scope()) {
      Antipode.append(BEFORE, AFTER);
      sealed = sent();
      assertThat(sealed.get("baggage").length() - "antipode=".length()).isLessThanOrEqualTo(110); // WIRE-32
      assertThat(sealed.get("baggage")).contains("~_.i~_.h.one.");
    }
    try (RequestScope request = request(sealed)) {
      assertThat(request.scope().lineage()).isEqualTo(Lineage.of(AFTER));
    }
    try (RequestScope request = request(Map.of("baggage", "antipode=" + TEXT))) {
      assertThat(request.scope().lineage().isEmpty()).isTrue();
      assertThat(request.scope().lineage().isComplete()).isFalse();
      assertThat(request.scope().gaps()).extracting(Gap::reason).containsExactly("seal");
    }
  }

  /** PROP-8, PROP-10. */
  @Test
  void theApplicationsMembersStayAsTheyAre() {
    try (LineageScope scope = Antipode.scope()) {
      Antipode.append(BEFORE);
      assertThat(sent("b", Map.of("baggage", "z=a+b;p=1, antipode=" + ANSWER + ",a=%20")))
          .isEqualTo(Map.of("baggage", "z=a+b;p=1,a=%20,antipode=" + TEXT));
    }
  }

  /** PROP-9: by length and by number. */
  @Test
  void oursGoesIntoItsOwnHeaderWhereItWouldDisplace() {
    String many = IntStream.range(0, 64).mapToObj(n -> "k" + n + "=v").collect(Collectors.joining(","));
    try (LineageScope scope = Antipode.scope()) {
      Antipode.append(BEFORE);
      for (String full : List.of("a=" + "x".repeat(8150), many)) {
        assertThat(sent("b", Map.of("baggage", full)))
            .isEqualTo(Map.of("baggage", full, "antipode-lineage", TEXT));
      }
    }
  }

  /** PROP-9: without a propagator of baggage. */
  @Test
  void withoutABaggagePropagatorItHasItsOwnHeader() {
    GlobalOpenTelemetry.resetForTest();
    try (LineageScope scope = Antipode.scope()) {
      Antipode.append(BEFORE);
      assertThat(sent()).isEqualTo(Map.of("antipode-lineage", TEXT));
    }
  }

  /** WIRE-31. */
  @Test
  void nothingLeavesForNothing() {
    assertThat(sent()).isEmpty();
    try (LineageScope scope = Antipode.scope()) {
      assertThat(sent()).isEmpty();
      scope.markIncomplete("rights", "", "blog-posts");
      assertThat(sent()).isEqualTo(Map.of("baggage", "antipode=1~_.i.blog-posts"));
    }
  }

  /** TRUST-5, TRUST-26: not even an older one. */
  @Test
  void aHostThatIsNotOursGetsNoLineage() {
    Map<String, String> old =
        Map.of("baggage", "a=1,antipode=" + ANSWER, "antipode-lineage", ANSWER, "uberctx-antipode", ANSWER);
    try (LineageScope scope = Antipode.scope()) {
      Antipode.append(BEFORE);
      assertThat(sent("api.example.com", old)).isEqualTo(Map.of("baggage", "a=1"));
    }
    assertThat(sent("api.example.com", old)).isEqualTo(Map.of("baggage", "a=1"));
    assertThat(sent("b", old)).isEqualTo(old); // no scope: the application's own affair, to one of ours
  }

  /** WIRE-33, WIRE-36: the injected copy's affair, counted, and the scope stays whole. */
  @Test
  void theBudget() {
    Antipode.configure(Settings.defaults().budgetBytes(60));
    try (Observed observed = new Observed(); LineageScope scope = Antipode.scope()) {
      Antipode.append(BEFORE, AFTER);
      assertThat(sent()).isEqualTo(Map.of("baggage", "antipode=" + ANSWER + "~_.i"));
      assertThat(scope.lineage().isComplete()).isTrue();
      assertThat(observed.linesWith("ANTIPODE_BUDGET_BYTES")).hasSize(1);
      assertThat(observed.count("antipode.lineage.incomplete", Map.of("reason", "budget", "store", "other")))
          .isEqualTo(1);
    }
  }

  /** WIRE-33, WIRE-34: what passed through goes first, the longest first; then the oldest change. */
  @Test
  void theNewestChangeStays() {
    Antipode.configure(Settings.defaults().budgetBytes(60));
    WriteId last = WriteId.position("last", "8371ab90c2d4e6f1", 100000);
    try (RequestScope request = request(Map.of("antipode-lineage", Lineage.of(WriteId.position("a", "e", 1)).serialize()))) {
      Antipode.append(WriteId.position("first", "8371ab90c2d4e6f1", 1));
      Propagation.extractResponse(HeaderCarrier.of(Map.of("antipode-lineage", Lineage.of(last).serialize())), "b");
      assertThat(request.scope().changedStores()).containsExactly("first", "last");
      assertThat(sent()).isEqualTo(Map.of("baggage", "antipode=1~last..8371ab90c2d4e6f1.100000~_.i"));
      Antipode.append(WriteId.position("first", "8371ab90c2d4e6f1", 2));
      assertThat(sent()).isEqualTo(Map.of("baggage", "antipode=1~first..8371ab90c2d4e6f1.2~_.i"));
    }
  }

  /** WIRE-36, WIRE-37: though serialize leaves it out by itself, whatever the budget. */
  @ParameterizedTest
  @ValueSource(ints = {60, 3000, 4087})
  void whatPassesEveryBudgetIsCountedToo(int budget) {
    Antipode.configure(Settings.defaults().budgetBytes(budget));
    try (Observed observed = new Observed(); LineageScope scope = Antipode.scope()) {
      Antipode.append(AFTER);
      for (int number = 0; number < 100; number++) {
        Antipode.append(new WriteId("big", "%050d".formatted(number), new Ordered("", 1)));
      }
      assertThat(sent()).isEqualTo(Map.of("baggage", "antipode=" + ANSWER + (budget < 100 ? "~_.i" : "~_.i.big")));
      assertThat(observed.count("antipode.lineage.incomplete", Map.of("reason", "budget", "store", "other"))).isEqualTo(1);
    }
  }

  /** SCOPE-16, SCOPE-19. */
  @Test
  void aPendingWriteMarksTheCopyThatLeaves() {
    try (Observed observed = new Observed(); LineageScope scope = Antipode.scope()) {
      Antipode.append(BEFORE);
      PendingWrite write = new PendingWrite("user-acl");
      scope.begin(write);
      assertThat(sent()).isEqualTo(Map.of("baggage", "antipode=" + TEXT + "~_.i.user-acl"));
      assertThat(observed.count("antipode.lineage.incomplete", Map.of("reason", "pending"))).isEqualTo(1);
      Antipode.configure(Settings.defaults().onPending(OnPending.RAISE));
      assertThatThrownBy(PropagationTest::sent).isInstanceOf(PendingWriteException.class);
      scope.end(write);
      assertThat(sent()).isEqualTo(Map.of("baggage", "antipode=" + TEXT));
    }
  }

  /** PROP-26. */
  @Test
  void switchedOffALineageIsForwardedAndNothingGoesBack() {
    Antipode.configure(Settings.defaults().mode(Mode.OFF));
    try (RequestScope request = request(Map.of("baggage", "antipode=" + TEXT))) {
      assertThat(sent()).isEqualTo(Map.of("baggage", "antipode=" + TEXT));
      assertThat(sent("api.example.com", Map.of())).isEmpty();
      Propagation.extractResponse(HeaderCarrier.of(Map.of("antipode-lineage", ANSWER)), "b");
      Propagation.unanswered("b", "timeout");
      assertThat(request.scope().lineage().serialize()).isEqualTo(TEXT);
      request.scope().append(AFTER);
      assertThat(answer(Map.of())).isEmpty();
    }
  }

  /** PROP-16: a public response carries a mark alone, also where the application copied one in. */
  @Test
  void aPublicResponseCarriesAMarkAlone() {
    try (RequestScope request = request(Map.of())) {
      Antipode.append(AFTER);
      Map<String, String> cache = Map.of("Cache-Control", "max-age=60, PUBLIC", "Antipode-Lineage", "1~_.i");
      assertThat(answer(Map.of("Cache-Control", "max-age=60, PUBLIC", "Antipode-Lineage", TEXT))).isEqualTo(cache);
    }
  }

  /** PROP-16: asked again, only what is new comes, as in a trailer. */
  @Test
  void whatIsWrittenAfterTheHeaderLeftIsLate() {
    try (Observed observed = new Observed(); RequestScope request = request(Map.of())) {
      Antipode.append(BEFORE);
      assertThat(answer(Map.of())).isEqualTo(Map.of("antipode-lineage", TEXT));
      Antipode.append(AFTER);
      assertThat(answer(Map.of())).isEqualTo(Map.of("antipode-lineage", ANSWER));
      assertThat(observed.count("antipode.write.late", Map.of("store", "other"))).isEqualTo(1);
    }
  }

  /** PROP-13: whether an earlier call wrote it there, or the application that relays it. */
  @ParameterizedTest
  @ValueSource(ints = {304, 503})
  void whatTheHeaderSaysAlreadyStaysInIt(int status) {
    Map<String, String> response;
    Map<String, String> relayed = Map.of("Cache-Control", "private", "Antipode-Lineage", TEXT);
    try (RequestScope request = request(Map.of())) {
      Antipode.append(BEFORE);
      response = answer(Map.of("Cache-Control", "private"), status);
      assertThat(answer(response, status)).isEqualTo(response).containsEntry("antipode-lineage", TEXT);
      assertThat(answer(relayed, status)).isEqualTo(relayed);
      Antipode.append(AFTER);
      response = answer(response, status);
      assertThat(response).containsEntry("antipode-lineage", TEXT + "," + ANSWER);
    }
    try (LineageScope scope = Antipode.scope()) {
      Propagation.extractResponse(HeaderCarrier.of(response), "b");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, AFTER));
    }
  }

  /** TRUST-3, TRUST-4: a caller outside is answered nothing, and an edge answers nobody. */
  @Test
  void aCallerOutsideIsAnsweredNothing() {
    for (String peer : List.of("203.0.113.9", "10.0.0.1")) {
      Antipode.configure(Settings.defaults().edge(peer.startsWith("10.")));
      try (RequestScope request = Propagation.extractRequest(
          HeaderCarrier.of(Map.of("antipode-lineage", TEXT)), peer)) {
        assertThat(request.scope().lineage().hasContent()).isFalse();
        Antipode.append(AFTER);
        assertThat(answer(Map.of("antipode-lineage", "x"))).isEmpty();
      }
    }
  }

  /** PROP-27: a call that brought no answer leaves the caller incomplete; to a host that is not ours it does not. */
  @Test
  void anUnansweredCallIsALoss() {
    try (LineageScope scope = Antipode.scope()) {
      Propagation.unanswered("api.example.com", "timeout");
      assertThat(scope.lineage().isComplete()).isTrue();
      Propagation.unanswered("b", "timeout");
      assertThat(scope.lineage().incomplete()).containsExactly("");
      assertThat(scope.gaps()).containsExactly(new Gap("unanswered", "", "a call to b brought no answer: timeout"));
    }
    Propagation.unanswered("b", "outside any scope");
  }

  /** PROP-34, PROP-23: a transport may know no method, and have lines without a value. */
  @Test
  void whatIsNotThereIsNotKnown() {
    List<Header> lines = List.of(new Header("Expires", null), new Header("Cache-Control", null));
    assertThat(SharedCaches.mayKeep(lines, null, 200)).isFalse();
    assertThat(SharedCaches.mayKeep(List.of(new Header("Cache-Control", "public")), null, 200)).isTrue();
  }

  /** PROP-12, PROP-23: whatever stands in headers, nothing throws. */
  @Test
  void anyHeaderIsRead() {
    List<String> values = List.of("", ",", ";", "%", "%zz", "antipode", "antipode=", "antipode=%", "=,=;", "\u0000", "é",
        "antipode=1~" + "x".repeat(9000), "for=\"", "for=", "%61ntipode=" + TEXT, "+antipode=" + TEXT);
    for (Trust trust : List.of(Trust.PRIVATE, Trust.ALL, Trust.NONE)) {
      Antipode.configure(Settings.defaults().trust(trust));
      for (String name : List.of("baggage", "antipode-lineage", "uberctx-antipode", "forwarded", "x-forwarded-for")) {
        for (String value : values) {
          HeaderCarrier carrier = HeaderCarrier.of(new HashMap<>(Map.of(name, value)));
          try (RequestScope request = Propagation.extractRequest(carrier, "127.0.0.1")) {
            Propagation.extractResponse(carrier, "b");
            request.scope().lineage().serialize();
            Propagation.injectRequest(carrier, "b");
            Propagation.injectResponse(carrier);
          }
        }
      }
    }
  }

  /** PROP-7, PROP-8: after rewriting there is one lineage, or none. */
  @Test
  void rewritingLeavesOneLineageOrNone() {
    for (boolean baggage : List.of(true, false)) {
      for (boolean jaeger : List.of(true, false)) {
        for (String text : new String[] {null, TEXT}) {
          Map<String, String> headers = new HashMap<>(Map.of(
              "baggage", "a=1,antipode=" + ANSWER, "antipode-lineage", ANSWER, "uberctx-antipode", ANSWER));
          headers.putAll(Carriers.rewrite(headers::get, text, new Formats(baggage, jaeger)));
          List<String> found = Carriers.read(HeaderCarrier.of(headers).lines()).texts();
          assertThat(found).isEqualTo(text == null ? List.of() : List.of(text));
        }
      }
    }
  }

  /** OBS-12, OBS-13: names that came over the wire are few, short and printable in logs and results, and one in metrics. */
  @Test
  void namesFromTheWire() {
    String nasty = "a\n2026 ERROR root payment failed\u001b[31m";
    List<WriteId> ids = new ArrayList<>();
    for (int number = 0; number < 40; number++) {
      ids.add(WriteId.position(nasty + number, "e", 1));
    }
    Antipode.configure(Settings.defaults().budgetBytes(60).onVacuous(Policy.PROCEED));
    MemoryStore.named("posts").client("a");
    try (Observed observed = new Observed(); LineageScope scope = Antipode.scope(Lineage.of(ids))) {
      sent();
      BarrierResult result = Antipode.barrier();
      scope.close();
      scope.append(ids);
      assertThat(observed.lines()).hasSizeBetween(3, 5).allMatch(line -> line.matches("\\p{Print}+") && line.length() < 1000);
      assertThat(observed.linesWith("and 35 more")).hasSize(2);
      assertThat(result.toString()).matches("\\p{Print}+").contains("and 35 more elsewhere");
      assertThat(result.explain().lines()).allMatch(line -> line.matches("\\p{Print}+"));
      assertThat(observed.count("antipode.lineage.incomplete", Map.of("reason", "budget", "store", "other"))).isEqualTo(40);
    }
  }
}
