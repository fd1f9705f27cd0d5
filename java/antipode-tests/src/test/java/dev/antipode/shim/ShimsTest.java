package dev.antipode.shim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import app.Application;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.ConfigurationException;
import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Rest;
import dev.antipode.ServerResult;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.diagnostics.telemetry.Telemetry;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Stores that join a process by shims that are found, their options, and the writes that shims record (chapter SHIM). */
@ExtendWith(AntipodeIsolated.class)
class ShimsTest {
  private static final BarrierOptions PATIENT = BarrierOptions.defaults().timeout(Duration.ofSeconds(20));

  private static Lineage object(String store) {
    return Lineage.of(new WriteId(store, "k", new Ordered("", 1)));
  }

  /** SHIM-23, BAR-22: a process that waits and never reads names the servers' URLs. */
  @Test
  void aStoreIsRegisteredByTheShimThatKnowsItsUrls() {
    assertThat(Shims.kinds()).contains("url-test");
    Shims.register(StoreOptions.named("s").replicas("url-test://b1", "url-test://b2"));
    BarrierResult result = Antipode.barrier(PATIENT.lineage(object("s")));
    assertThat(result.complete()).isTrue();
    assertThat(result.store("s").servers()).extracting(ServerResult::address)
        .containsExactly("url-test://b1", "url-test://b2");
    assertThatThrownBy(() -> Shims.register(StoreOptions.named("t").replicas("unheard-of://b1")))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("url-test");
    assertThatThrownBy(() -> Shims.register(StoreOptions.named("t"))).isInstanceOf(ConfigurationException.class);
    assertThatThrownBy(() -> Shims.register(StoreOptions.named("").replicas("url-test://b1")))
        .isInstanceOf(ConfigurationException.class);
  }

  /** SHIM-23: an application server, or a plug-in, sets the class loader of its threads; it need not see this library. */
  @Test
  void aStoreJoinsWhateverTheClassLoaderOfTheThreadSees() {
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    try {
      thread.setContextClassLoader(new ClassLoader(null) {});
      assertThat(Shims.register(StoreOptions.named("s").replicas("url-test://b1")).replicas()).hasSize(1);
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  /** CONF-10. */
  @Test
  void theEnvironmentListsTheReplicasWhereTheCodeDoesNot() {
    try {
      ProcessSettings.environment(Map.of("ANTIPODE_STORE_BLOG_POSTS_REPLICAS", "url-test://b1,url-test://b2"));
      assertThat(Shims.register(StoreOptions.named("blog-posts")).replicas())
          .containsExactly("url-test://b1", "url-test://b2");
    } finally {
      ProcessSettings.environment(null);
    }
  }

  @Test
  void laterWrapsSayWhatTheySayAndTheRestStays() {
    StoreOptions first = StoreOptions.named("s").replicas(List.of("a", "b")).waitOnRead(true).lineageIn(false);
    StoreOptions joined = first.joinedWith(StoreOptions.named("s").waitOnRead(false).hashKeys(true));
    assertThat(first.replicas()).containsExactly("a", "b");
    assertThat(joined.waitOnRead()).isFalse();
    assertThat(joined.lineageIn()).isFalse();
    assertThat(joined.hashKeys()).isTrue();
    assertThat(joined.replicas()).as("servers are no options").isNull();
    assertThat(joined.restOr(Rest.FIELD)).isEqualTo(Rest.FIELD);
    assertThat(joined.restNowhere().restOr(Rest.FIELD)).isNull();
    assertThat(joined.extra("track")).isNull();
    assertThat(joined.extra("track", true).extra("track")).isEqualTo(true);
    assertThatThrownBy(() -> joined.timeout(Duration.ofMillis(-1))).isInstanceOf(ConfigurationException.class);
  }

  /** SHIM-6, SCOPE-14, SCOPE-17, EPOCH-5. */
  @Test
  void aWriteIsPendingUntilItsOutcomeIsKnown() {
    RegisteredStore store = Shims.register(StoreOptions.named("s").replicas("url-test://b1"));
    try (LineageScope scope = Antipode.scope()) {
      try (Write write = store.begin(Key.of("k"))) {
        assertThat(scope.lineage().incomplete()).containsExactly("s");
        write.record(new Ordered("", 7));
      }
      assertThat(scope.pending()).isEmpty();
      assertThat(scope.lineage()).isEqualTo(Lineage.of(new WriteId("s", "k", new Ordered("", 7))));
      try (Write write = store.begin(Key.of("refused"))) {
        write.abandon();
      }
      assertThat(scope.lineage().isComplete()).isTrue();
      try (Write write = store.begin(Key.of("without rights"))) {
        write.recordIncomplete("rights", "no right to the position");
      }
      assertThat(scope.lineage().incomplete()).containsExactly("s");
      assertThat(scope.gaps()).extracting("reason").containsExactly("rights");
      assertThat(Antipode.barrier(PATIENT).gaps()).as("BAR-19").isEqualTo(scope.gaps());
      try (Write write = store.begin(Key.of("unanswered"))) {
        assertThat(write).isNotNull();
      }
      assertThat(scope.pending()).hasSize(1).allMatch(pending -> pending.isUnknown());
    }
  }

  @Test
  void eachScopeThatHasACommandOfAWriteGetsItsPosition_SCOPE_24() {
    RegisteredStore store = Shims.register(StoreOptions.named("s").replicas("url-test://b1"));
    Lineage written = Lineage.of(new WriteId("s", "k", new Ordered("", 7)));
    Write write = store.begin(Key.of("k"));
    Write unknown = store.begin(Key.of("k"));
    try (LineageScope outer = Antipode.scope()) {
      write.joinScope();
      write.joinScope();
      assertThat(outer.pending()).hasSize(1);
      try (LineageScope inner = Antipode.scope()) {
        write.joinScope();
        unknown.joinScope();
        write.record(new Ordered("", 7));
        unknown.close();
        assertThat(inner.lineage()).isEqualTo(written);
        assertThat(inner.pending()).hasSize(1).allMatch(pending -> pending.isUnknown());
      }
      assertThat(outer.lineage()).isEqualTo(written);
      unknown.joinScope();
      assertThat(outer.pending()).as("too late").hasSize(1).allMatch(pending -> pending.isUnknown());
    }
  }

  @Test
  void whoExecutesAWriteThatOthersQueuedGetsItsPosition_SCOPE_24() {
    RegisteredStore store = Shims.register(StoreOptions.named("s").replicas("url-test://b1"));
    LineageScope queueing = Antipode.scope();
    Write write = store.begin(Key.of("k"));
    queueing.close();
    write.executedBy(null);
    assertThat(write.scopes()).as("outside any scope, as it was").containsExactly(queueing);
    try (LineageScope executing = Antipode.scope()) {
      write.executedBy(executing);
      assertThat(executing.pending()).hasSize(1);
      write.record(new Ordered("", 7));
      assertThat(executing.lineage()).isEqualTo(Lineage.of(new WriteId("s", "k", new Ordered("", 7))));
      assertThat(queueing.lineage().incomplete()).as("SCOPE-4").containsExactly("s");
    }
  }

  @Test
  void aVersionThatNoLineageCanHoldIsNoErrorOfTheWrite_SHIM_2() {
    RegisteredStore store = Shims.register(StoreOptions.named("s").replicas("url-test://b1"));
    try (LineageScope scope = Antipode.scope()) {
      store.begin().record(new Ordered("", 7)); // no key, and no epoch
      store.begin().recordUpperBound(new Ordered("", 7));
      assertThat(scope.pending()).isEmpty();
      assertThat(scope.lineage().incomplete()).containsExactly("s");
    }
  }

  /** REC-11, OBS-6. */
  @Test
  void aSiteIsTheApplicationsOwnFrameAndThereAreNotTooMany() {
    assertThat(Application.site(CallSite::current)).isEqualTo(Application.site());
    for (int number = 0; number < 2000; number++) {
      Telemetry.bounded("app/Application.java:" + number);
    }
    assertThat(Telemetry.bounded("app/Application.java:1")).isEqualTo("app/Application.java:1");
    assertThat(Telemetry.bounded("app/Application.java:2000")).isEqualTo("other");
  }
}
