package dev.antipode;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.example.app.Application;
import dev.antipode.shim.PendingWrite;
import dev.antipode.testing.AntipodeIsolated;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Scopes: their life, what is removed, writes in flight, what is lost (SCOPE-1 to SCOPE-5, SCOPE-14 to SCOPE-22). */
@ExtendWith(AntipodeIsolated.class)
class ScopeTest {
  private static WriteId at(long counter, String store) {
    return WriteId.position(store, "e", counter);
  }

  private static WriteId at(long counter) {
    return at(counter, "posts");
  }

  private static String text() {
    return LineageScope.current().lineage().serialize();
  }

  @AfterEach
  void nothingStaysCurrent() {
    assertThat(LineageScope.current()).isNull();
  }

  // Life

  /** SCOPE-33: what the inner one writes behind that is in it. */
  @Test
  void aScopeWhoseOuterOneEndsFirstStaysInForce() throws Exception {
    FutureTask<Void> work = new FutureTask<>(() -> {
      LineageScope outer = Antipode.scope();
      try (LineageScope within = Antipode.scope()) {
        outer.close();
        assertThat(Antipode.currentScope()).contains(within);
        Antipode.append(at(1));
        assertThat(within.lineage()).isEqualTo(Lineage.of(at(1)));
      }
      return null;
    });
    new Thread(work).start();
    work.get();
  }

  /** SCOPE-1, SCOPE-3, LIN-30. */
  @Test
  void aScopeBeginsEmptyGathersAndEnds() {
    LineageScope seen;
    try (LineageScope scope = Antipode.scope()) {
      seen = scope;
      assertThat(Antipode.currentScope()).contains(scope);
      assertThat(Antipode.serialize()).isEqualTo("1");
      Antipode.append(at(3), at(2));
      Antipode.transfer(Lineage.of(at(1, "acl")));
      assertThat(Antipode.deserialize(Antipode.serialize())).isEqualTo(Lineage.of(at(3), at(1, "acl")));
    }
    assertThat(seen.isClosed()).isTrue();
    seen.close();
    seen.stop();
    assertThat(LineageScope.current()).isNull();
  }

  /** SCOPE-5, SCOPE-10. */
  @Test
  void rootOpensANewScopeAndStopGivesTheOuterBack() {
    try (LineageScope outer = Antipode.scope(Lineage.of(at(1)))) {
      LineageScope inner = Antipode.root();
      assertThat(inner.lineage()).isEqualTo(Lineage.EMPTY);
      Antipode.append(at(9, "acl"));
      Antipode.stop();
      assertThat(inner.isClosed()).isTrue();
      assertThat(LineageScope.current()).isSameAs(outer);
      assertThat(outer.isClosed()).isFalse();
      assertThat(text()).isEqualTo("1~posts..e.1");
    }
    Antipode.stop(); // outside any scope it is harmless
  }

  /** SCOPE-10: a task that stops the scope that it shares ends it, and leaves this thread's Context alone. */
  @Test
  void stopInAnotherThreadClosesOnlyItsOwn() throws Exception {
    try (LineageScope scope = Antipode.scope()) {
      Thread other = new Thread(() -> {
        Antipode.root();
        Antipode.stop();
      });
      other.start();
      other.join(30_000);
      assertThat(scope.isClosed()).isFalse();
      assertThat(LineageScope.current()).isSameAs(scope);
    }
  }

  /** SCOPE-4: dropped, counted, warned about with the site; nothing is thrown, and the lineage does not look complete. */
  @Test
  void aLateAppendIsDroppedAndCounted() {
    try (Observed observed = new Observed()) {
      LineageScope scope = Antipode.scope();
      scope.close();
      Application.appendTo(scope, at(1));
      assertThat(scope.lineage()).isEqualTo(Lineage.EMPTY.markedIncomplete("posts"));
      scope.transfer(Lineage.of(at(2, "likes")));
      assertThat(scope.lineage()).isEqualTo(Lineage.EMPTY.markedIncomplete("likes", "posts"));
      assertThat(observed.count("antipode.write.lost", Map.of("reason", "closed", "store", "other"))).isEqualTo(2);
      assertThat(observed.linesWith("has ended")).first().asString()
          .contains("dropped a write to posts").contains("site=app/Application.java:").contains("detachedScope");
    }
  }

  /** SCOPE-4: each way by which something comes to a scope. */
  @Test
  void whateverAClosedScopeDropsMarksIt() {
    assertDropped(
        Lineage.EMPTY.markedIncomplete("posts"),
        List.of((scope, write) -> scope.append(at(1)), (scope, write) -> scope.written(write, at(1))));
    assertDropped(Lineage.EMPTY.markedIncomplete("posts"), comings(Lineage.of(at(1))));
    assertDropped(Lineage.EMPTY.markedIncomplete(), comings(Lineage.of(at(1)).markedIncomplete("users")));
    assertDropped(Lineage.EMPTY.markedIncomplete(), comings(Lineage.EMPTY.markedIncomplete("users")));
    assertDropped(Lineage.EMPTY.markedIncomplete(), comings(Lineage.of(at(1)).markedIncomplete()));
  }

  private static List<BiConsumer<LineageScope, PendingWrite>> comings(Lineage came) {
    return List.of(
        (scope, write) -> scope.transfer(came),
        (scope, write) -> scope.transferRead(came),
        (scope, write) -> scope.merge(came),
        (scope, write) -> scope.receive(came));
  }

  private static void assertDropped(Lineage left, List<BiConsumer<LineageScope, PendingWrite>> ways) {
    for (BiConsumer<LineageScope, PendingWrite> way : ways) {
      try (Observed observed = new Observed()) {
        LineageScope scope = Antipode.scope();
        PendingWrite write = new PendingWrite("posts");
        scope.begin(write);
        scope.close();
        way.accept(scope, write);
        scope.end(write);
        assertThat(scope.lineage().serialize()).isEqualTo(left.serialize()); // two that are equal may have other marks
        assertThat(observed.count("antipode.write.lost", Map.of("reason", "closed"))).isEqualTo(1);
      }
    }
  }

  /** SCOPE-9: an orphan has its site. */
  @Test
  void anAppendOutsideAnyScopeIsAnOrphan() {
    try (Observed observed = new Observed()) {
      Application.append(at(1));
      Application.append(at(2));
      Antipode.transfer(Lineage.of(at(3)));
      assertThat(observed.count("antipode.write.lost", Map.of("reason", "orphan", "store", "other"))).isEqualTo(3);
      assertThat(observed.linesWith("outside any scope")).hasSizeBetween(1, 2); // one a site and minute (OBS-7)
      assertThat(observed.linesWith("site=app/Application.java:")).hasSize(1);
    }
  }

  /** SCOPE-22. */
  @Test
  void serializeOutsideAScopeIsAnError() {
    assertThatThrownBy(Antipode::serialize).isInstanceOf(ConfigurationException.class).hasMessageContaining("outside");
    assertThat(Antipode.remove("posts")).isEqualTo(Removal.NOTHING);
  }

  /** SCOPE-11: what carries OpenTelemetry's Context carries the scope. */
  @Test
  void theContextIsOpenTelemetrys() {
    Context context;
    LineageScope scope = Antipode.scope();
    context = Context.current();
    scope.close();
    try (Scope current = context.makeCurrent()) {
      assertThat(LineageScope.current()).isSameAs(scope);
    }
  }

  /** SCOPE-2: no append of any thread is lost. */
  @Test
  void joinsAreAtomic() throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(4);
    try (LineageScope scope = Antipode.scope()) {
      List<Future<?>> done = new ArrayList<>();
      for (int thread = 0; thread < 4; thread++) {
        String store = "s" + thread;
        done.add(pool.submit(Antipode.carry(() -> {
          for (int key = 0; key < 100; key++) {
            Antipode.append(new WriteId(store, "k" + key, new Ordered("", key)));
          }
        })));
      }
      for (Future<?> each : done) {
        each.get(60, TimeUnit.SECONDS);
      }
      assertThat(scope.lineage().size()).isEqualTo(400);
    } finally {
      pool.shutdownNow();
    }
  }

  // Removing

  /** LIN-21, SCOPE-21. */
  @Test
  void removeSaysWhatItTookAndWhatIsStillCovered() {
    WriteId cat = new WriteId("img", "cat", new Opaque("m"));
    try (LineageScope scope = Antipode.scope(Lineage.of(at(9), cat))) {
      Removal taken = Antipode.remove(cat);
      assertThat(taken.lineage().ids()).containsExactly(cat);
      assertThat(taken.stillCovered()).isEmpty();
      Removal covered = Antipode.remove(at(4));
      assertThat(covered.lineage().isEmpty()).isTrue();
      assertThat(covered.stillCovered()).containsExactly(at(4));
      assertThat(text()).isEqualTo("1~posts..e.9");
    }
  }

  /** LIN-24, LIN-25, LIN-26: what was removed does not come back by itself; what the scope does shows. */
  @Test
  void whatWasRemovedDoesNotComeBackWithAResponse() {
    try (LineageScope scope = Antipode.scope(Lineage.of(at(5), at(1, "acl")))) {
      Antipode.remove("posts");
      scope.merge(Lineage.of(at(9), at(2, "acl")).markedIncomplete("posts", "acl"));
      assertThat(text()).isEqualTo("1~acl..e.2~_.i.acl");
      Antipode.append(at(6));
      assertThat(text()).isEqualTo("1~acl..e.2~posts..e.6~_.i.acl");
      scope.merge(Lineage.of(at(9)));
      assertThat(text()).isEqualTo("1~acl..e.2~posts..e.6~_.i.acl");
      Antipode.transfer(Lineage.of(at(9)));
      Antipode.removeIncomplete();
      assertThat(text()).isEqualTo("1~acl..e.2~posts..e.9");
    }
  }

  @Test
  void removingALineageFiltersWhatItCovers() {
    try (LineageScope scope = Antipode.scope(Lineage.of(at(5), at(3, "acl")))) {
      Removal taken = Antipode.remove(Lineage.of(at(7), at(1, "acl")));
      assertThat(taken.lineage()).isEqualTo(Lineage.of(at(5)));
      assertThat(taken.stillCovered()).containsExactly(at(1, "acl"));
      scope.merge(Lineage.of(at(6)));
      assertThat(text()).isEqualTo("1~acl..e.3");
      scope.merge(Lineage.of(at(8)));
      assertThat(text()).isEqualTo("1~acl..e.3~posts..e.8");
    }
  }

  /** LIN-27, PROP-13. */
  @Test
  void aResponseCarriesAdditionsAlone() {
    LineageScope scope = LineageScope.create(Lineage.of(at(5), at(1, "acl")).markedIncomplete("acl"), ScopeKind.REQUEST);
    assertThat(scope.additions().hasContent()).isFalse();
    scope.append(at(5));
    assertThat(scope.additions().hasContent()).isFalse();
    scope.append(at(6), at(1, "users"));
    scope.markIncomplete("rights", "GRANT …", "users");
    assertThat(scope.additions().serialize()).isEqualTo("1~posts..e.6~users..e.1~_.i.users");
    assertThat(scope.gaps()).containsExactly(new Gap("rights", "users", "GRANT …"));
    LineageScope message = LineageScope.create(Lineage.EMPTY, ScopeKind.MESSAGE);
    message.receive(Lineage.of(at(5)));
    assertThat(message.additions().hasContent()).isFalse();
  }

  // Pending writes

  /** SCOPE-14, SCOPE-16, SCOPE-17, SCOPE-20. */
  @Test
  void aWriteInFlightMarksWhatLeavesAndNotTheScope() {
    try (LineageScope scope = Antipode.scope(Lineage.of(at(1, "acl")))) {
      PendingWrite write = new PendingWrite("posts");
      scope.begin(write);
      assertThat(Antipode.serialize()).isEqualTo("1~acl..e.1~_.i.posts");
      assertThat(scope.additions().serialize()).isEqualTo("1~_.i.posts");
      assertThat(scope.held().serialize()).isEqualTo("1~acl..e.1");
      scope.written(write, at(7));
      assertThat(Antipode.serialize()).isEqualTo("1~acl..e.1~posts..e.7");
      PendingWrite rolledBack = new PendingWrite("posts");
      scope.begin(rolledBack);
      scope.end(rolledBack);
      assertThat(Antipode.serialize()).isEqualTo("1~acl..e.1~posts..e.7");
    }
  }

  /** SCOPE-20: the value may be put beside data, or be waited for; handing it out is no finding and never throws. */
  @Test
  void aLineageThatIsHandedOutIsMarked() {
    Antipode.configure(Settings.defaults().onPending(OnPending.RAISE));
    try (Observed observed = new Observed(); LineageScope scope = Antipode.scope(Lineage.of(at(1, "acl")))) {
      PendingWrite write = new PendingWrite("posts");
      scope.begin(write);
      assertThat(scope.lineage().serialize()).isEqualTo("1~acl..e.1~_.i.posts");
      assertThat(Antipode.currentScope().orElseThrow().lineage().isComplete()).isFalse();
      assertThat(scope.held().serialize()).isEqualTo("1~acl..e.1");
      scope.written(write, at(7));
      assertThat(scope.lineage().serialize()).isEqualTo("1~acl..e.1~posts..e.7");
      assertThat(scope.lineage()).isSameAs(scope.held());
      assertThat(observed.count("antipode.finding.count", Map.of())).isZero();
      PendingWrite lost = new PendingWrite("posts");
      scope.begin(lost);
      lost.outcomeUnknown();
      assertThat(scope.lineage().incomplete()).containsExactly("posts");
    }
  }

  /** SCOPE-17: an unknown outcome stays pending for the life of the scope, also in a copy. */
  @Test
  void anUnknownOutcomeStays() {
    try (LineageScope scope = Antipode.scope()) {
      PendingWrite write = new PendingWrite("posts");
      scope.begin(write);
      write.outcomeUnknown();
      assertThat(scope.publishedBeforeCommit()).isEmpty();
      Antipode.append(at(9));
      assertThat(Antipode.serialize()).isEqualTo("1~posts..e.9~_.i.posts");
      try (LineageScope copy = Antipode.detachedScope()) {
        assertThat(text()).isEqualTo("1~posts..e.9~_.i.posts");
      }
    }
  }

  /** SCOPE-18, SCOPE-19: the same task's open write is the finding, and on_pending decides. */
  @Test
  void publishedBeforeCommit() {
    try (Observed observed = new Observed(); LineageScope scope = Antipode.scope()) {
      PendingWrite write = new PendingWrite("posts");
      scope.begin(write);
      assertThat(Application.serialize()).isEqualTo("1~_.i.posts");
      assertThat(observed.lines()).isEmpty();
      Antipode.configure(Settings.defaults().onPending(OnPending.WARN));
      assertThat(Application.serialize()).isEqualTo("1~_.i.posts");
      assertThat(observed.lines()).singleElement().asString()
          .contains("before the commit of posts").contains("app/Application.java:");
      Antipode.configure(Settings.defaults().onPending(OnPending.RAISE));
      assertThatThrownBy(Application::serialize)
          .isInstanceOf(PendingWriteException.class).hasMessageContaining("before the commit of posts");
      scope.written(write, at(1));
      assertThat(Application.serialize()).isEqualTo("1~posts..e.1");
      assertThat(observed.count("antipode.finding.count", Map.of("kind", "published_before_commit"))).isEqualTo(3);
    }
  }

  /** SCOPE-18: another thread's open write marks the copy, and is no violation. */
  @Test
  void aConcurrentWriteIsNoViolation() throws Exception {
    Antipode.configure(Settings.defaults().onPending(OnPending.RAISE));
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch commit = new CountDownLatch(1);
    try (LineageScope scope = Antipode.scope()) {
      Thread writer = new Thread(Antipode.carry(() -> {
        PendingWrite write = new PendingWrite("posts");
        scope.begin(write);
        begun.countDown();
        await(commit);
        scope.written(write, at(3));
      }));
      writer.start();
      await(begun);
      assertThat(Antipode.serialize()).isEqualTo("1~_.i.posts");
      commit.countDown();
      writer.join(30_000);
      assertThat(Antipode.serialize()).isEqualTo("1~posts..e.3");
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** PROP-16: what is written after the header has left is late. */
  @Test
  void writesAfterTheHeaderHasLeftAreLate() {
    try (Observed observed = new Observed()) {
      LineageScope scope = LineageScope.create(Lineage.EMPTY, ScopeKind.REQUEST);
      scope.append(at(1));
      scope.sent();
      scope.append(at(2));
      assertThat(scope.lineage().serialize()).isEqualTo("1~posts..e.2");
      assertThat(observed.count("antipode.write.late", Map.of("store", "other"))).isEqualTo(1);
    }
  }

  /** LIN-28, OBS-5: what cannot be true is dropped and its store marked; a scope prints no keys. */
  @Test
  void anImplausibleEntryIsDropped() {
    try (Observed observed = new Observed(); LineageScope scope = Antipode.scope(Lineage.of(at(-1), at(5, "acl")))) {
      scope.discardImplausible(at(-1), "a greater position than its writer got");
      assertThat(text()).isEqualTo("1~acl..e.5~_.i.posts");
      assertThat(observed.count("antipode.lineage.dropped", Map.of("reason", "implausible"))).isEqualTo(1);
      assertThat(observed.count("antipode.lineage.incomplete", Map.of("reason", "implausible"))).isEqualTo(1);
      assertThat(scope.toString()).isEqualTo("LineageScope[root, open]");
      assertThat(Key.of("private").toString()).doesNotContain("private");
    }
  }

  /** OBS-10: without an SDK all of it works. */
  @Test
  void withoutAnOpenTelemetrySdk() {
    LineageScope scope = Antipode.scope();
    scope.close();
    scope.append(at(1));
    Antipode.append(at(1));
    assertThat(scope.lineage()).isEqualTo(Lineage.EMPTY);
  }

  // Reading blocks

  @Test
  void aReadingBlockCollectsAndMayMerge() {
    try (LineageScope scope = Antipode.scope()) {
      try (Reading outer = Antipode.reading(Lineage.of(at(1)))) {
        assertThat(outer.after()).contains(Lineage.of(at(1)));
        try (Reading inner = Antipode.reading().merging()) {
          Reading.current().saw(Lineage.of(at(1, "acl")), at(5));
          Reading.current().marked("users");
          assertThat(inner.lineage().serialize()).isEqualTo("1~acl..e.1~posts..e.5~_.i.users");
          assertThat(text()).isEqualTo("1");
          inner.close();
        }
        assertThat(Reading.current()).isSameAs(outer);
        assertThat(outer.lineage().hasContent()).isFalse();
      }
      assertThat(Reading.current()).isNull();
      assertThat(text()).isEqualTo("1~acl..e.1~posts..e.5~_.i.users");
    }
  }

  /** SCOPE-26: what was written and heard under off is not recorded. */
  @Test
  void aScopeThatIsOpenWhenTheModeLeavesOffIsIncomplete() {
    try (LineageScope before = Antipode.scope(Lineage.of(WriteId.position("posts", "e", 1)))) {
      Antipode.configure(Settings.defaults().mode(Mode.OFF));
      LineageScope during = LineageScope.create(Lineage.EMPTY, ScopeKind.REQUEST);
      LineageScope ended = LineageScope.create(Lineage.EMPTY, ScopeKind.REQUEST);
      ended.stop();
      assertThat(before.lineage().isComplete()).isTrue();
      Antipode.configure(Settings.defaults().mode(Mode.ENFORCE));
      LineageScope after = LineageScope.create(Lineage.EMPTY, ScopeKind.REQUEST);
      for (LineageScope open : List.of(before, during)) {
        assertThat(open.lineage().incomplete()).containsExactly("");
        assertThat(open.gaps()).extracting(Gap::reason).containsExactly("mode");
        assertThat(open.additions().incomplete()).containsExactly("");
      }
      for (LineageScope other : List.of(ended, after)) {
        assertThat(other.lineage().isComplete()).isTrue();
        assertThat(other.gaps()).isEmpty();
      }
      during.removeIncomplete();
      assertThat(during.lineage().isComplete()).isTrue();
      before.stop();
      Antipode.configure(Settings.defaults().mode(Mode.DRY_RUN)); // from a mode that was not off
      assertThat(before.lineage().incomplete()).containsExactly("");
      assertThat(after.lineage().isComplete()).isTrue();
    }
  }
}
