package dev.antipode.propagation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.PendingWrite;
import dev.antipode.Settings;
import dev.antipode.WriteId;
import dev.antipode.testing.AntipodeIsolated;
import dev.antipode.testing.Isolated;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What leaves outside any scope: nothing, or an incomplete lineage (SCOPE-31). */
@ExtendWith(AntipodeIsolated.class)
class OutsideScopesTest {
  private static final WriteId BEFORE = WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1042);
  private static final String TEXT = "1~blog-posts..8371ab90c2d4e6f1.1042";
  private static final String ANSWER = "1~user-acl..8371ab90c2d4e6f1.57";

  private static Map<String, String> sent() {
    return PropagationTest.sent("b", Map.of());
  }

  /** SCOPE-31: once this process has known a lineage. */
  @Test
  void whatLeavesOutsideAnyScopeIsIncomplete() {
    List<Runnable> happenings = List.of(
        () -> Antipode.append(BEFORE),
        () -> {
          try (LineageScope scope = Antipode.scope()) {
            scope.append(BEFORE);
          }
        },
        () -> {
          try (LineageScope scope = Antipode.scope()) {
            scope.begin(new PendingWrite("blog-posts"));
          }
        },
        () -> Propagation.extractRequest(HeaderCarrier.of(Map.of("baggage", "antipode=" + TEXT)), "10.0.0.1").close(),
        () -> Propagation.extractResponse(HeaderCarrier.of(Map.of("antipode-lineage", ANSWER)), "b"));
    for (Runnable happening : happenings) {
      try (Isolated isolated = new Isolated()) {
        assertThat(sent()).isEmpty();
        assertThat(Messages.outgoing(null)).isNull();
        happening.run();
        assertThat(sent().toString()).endsWith("=1~_.i}");
        assertThat(Messages.outgoing(null)).isEqualTo("1~_.i");
        assertThat(PropagationTest.sent("example.org", Map.of())).isEmpty();
        try (LineageScope scope = Antipode.scope()) {
          assertThat(sent()).isEmpty();
        }
      }
    }
  }

  /** SCOPE-31: an outbox relay's own lineage stays; with the mode off nothing is added (PROP-26). */
  @Test
  void whatTheApplicationGaveALineageStaysOutsideAnyScope() {
    Antipode.append(BEFORE);
    for (Map<String, String> own : List.of(
        Map.of("antipode-lineage", TEXT), Map.of("baggage", "a=1,antipode=" + TEXT))) {
      assertThat(PropagationTest.sent("b", own)).isEqualTo(own);
    }
    Antipode.configure(Settings.defaults().mode(Mode.OFF));
    assertThat(sent()).isEmpty();
    assertThat(Messages.outgoing(null)).isNull();
  }
}
