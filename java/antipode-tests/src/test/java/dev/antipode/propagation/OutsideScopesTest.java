package dev.antipode.propagation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Reading;
import dev.antipode.Settings;
import dev.antipode.WriteId;
import dev.antipode.internal.scope.ScopeLog;
import dev.antipode.internal.store.Registry;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.shim.PendingWrite;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Write;
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
        () -> registered("blog-posts").begin(Key.of("k")),
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

  private static RegisteredStore registered(String name) {
    MemoryStore.named(name).client("a");
    return Registry.current().need(name);
  }

  /** SCOPE-32: beside a value all but the first write of the process counts; what rests nowhere is not told. */
  @Test
  void whatRestsOutsideAnyScopeIsIncomplete() {
    MemoryClient client = MemoryStore.named("s").client("a");
    client.set("first", "v");
    client.set("second", "v");
    Antipode.configure(Settings.defaults().mode(Mode.OFF));
    client.set("off", "v");
    Antipode.configure(Settings.defaults());
    for (String key : List.of("first", "second", "off")) {
      try (LineageScope scope = Antipode.scope(); Reading seen = Antipode.reading()) {
        client.get(key);
        assertThat(seen.lineage().isComplete()).isEqualTo(!key.equals("second"));
      }
    }
    assertThat(ScopeLog.lineageBesideOutside(false, null)).isEqualTo(Lineage.EMPTY);
  }

  /** SCOPE-32: another write does, and what was known while its transaction was open. */
  @Test
  void aWriteDoesNotCountBesideItsOwnValue() {
    RegisteredStore store = registered("s");
    Write first = store.begin(Key.of("k"));
    assertThat(first.lineageBeside(true).isComplete()).isTrue();
    first.abandon();
    Write second = store.begin(Key.of("k"));
    assertThat(second.lineageBeside(true).isComplete()).isFalse();
    assertThat(second.lineageBeside(false).isComplete()).isTrue();
    assertThat(first.lineageBeside(true).isComplete()).isFalse();
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
