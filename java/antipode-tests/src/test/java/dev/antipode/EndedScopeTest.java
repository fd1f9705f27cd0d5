package dev.antipode;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.internal.store.Registry;
import dev.antipode.memory.MemoryStore;
import dev.antipode.propagation.Carriers;
import dev.antipode.propagation.Inbound;
import dev.antipode.propagation.Messages;
import dev.antipode.shim.Write;
import dev.antipode.testing.AntipodeIsolated;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What goes on in a scope that has ended and is current: somebody has put its Context back (SCOPE-34). */
@ExtendWith(AntipodeIsolated.class)
class EndedScopeTest {
  private final MemoryStore store = MemoryStore.named("posts");
  private Lineage written;
  private Lineage marked;
  private LineageScope ended;
  private Context left;

  /** A request that wrote, waited, and left its Context somewhere. */
  @BeforeEach
  void end() {
    try (LineageScope scope = Antipode.scope()) {
      ended = scope;
      store.client("a").set("k", "v");
      store.client("b");
      assertThat(Antipode.barrier().complete()).isTrue();
      written = ended.lineage();
      marked = written.markedIncomplete();
      left = Context.current();
    }
    assertThat(ended.lineage()).as("it is not current").isEqualTo(written);
  }

  @Test
  void whatLeavesOrRestsOrIsHandedOutIsIncompleteAnywhere() {
    try (LineageScope other = Antipode.scope(); Scope back = left.makeCurrent(); Write write = begin()) {
      assertThat(LineageScope.current()).isSameAs(ended);
      assertThat(Antipode.serialize()).isEqualTo(marked.serialize());
      assertThat(ended.lineage()).isEqualTo(marked);
      assertThat(Messages.outgoing(null)).isEqualTo(marked.markedIncomplete("posts").serialize());
      assertThat(write.lineageBeside(true)).isEqualTo(marked);
      try (LineageScope copy = Antipode.detachedScope()) {
        assertThat(copy.lineage().isComplete()).isFalse();
      }
      write.abandon();
    }
    assertThat(ended.lineage()).isEqualTo(written);
  }

  private static Write begin() {
    return Registry.current().need("posts").begin();
  }

  @Test
  void aBarrierOnItIsNotCompleteThoughItWas() {
    try (Scope back = left.makeCurrent()) {
      BarrierResult result = Antipode.barrier();
      assertThat(result.satisfied()).isTrue();
      assertThat(result.complete()).isFalse();
      assertThat(result.gaps()).extracting("reason").containsExactly("unscoped");
    }
  }

  @Test
  void theResponseOfItsOwnEndIsWhole() {
    Inbound request = new Inbound(Carriers.read(List.of()), "10.0.0.7", false);
    try (Scope current = request.makeCurrent()) {
      store.client("a").set("k", "v");
      request.close();
      assertThat(request.scope().additions().isComplete()).isTrue();
      assertThat(request.scope().lineage().isComplete()).isFalse();
    }
  }
}
