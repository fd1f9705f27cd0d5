package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Policy;
import dev.antipode.Reach;
import dev.antipode.ServerResult;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Servers that nobody names: judged as long as a connection of a wrapped client leads there (BAR-62). */
@ExtendWith(AntipodeIsolated.class)
class ReachedServersTest {
  private static final BarrierOptions PATIENT = BarrierOptions.defaults()
      .lineage(Lineage.of(new WriteId("s", "k", new Ordered("", 1))))
      .timeout(Duration.ofSeconds(60)).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);
  private static final BarrierOptions HASTY = PATIENT.timeout(Duration.ofMillis(100));

  private static final StoreOptions PLAIN = StoreOptions.named("s");

  private final Fake named = new Fake("named", FakeShim.always(Visibility.VISIBLE));
  private final Fake old = new Fake("old", FakeShim.always(Visibility.NOT_YET));
  private final StoreOptions listing = PLAIN.replicas(List.of(named));

  @BeforeEach
  void often() {
    Discovery.hurry(0, TimeUnit.SECONDS.toNanos(30));
  }

  @AfterEach
  void atLeisure() {
    Discovery.hurry(TimeUnit.SECONDS.toNanos(5), TimeUnit.SECONDS.toNanos(30));
  }

  /** One of a wrapped client; it leads where it was opened until it is closed. */
  private static final class Line {
    volatile boolean isOpen = true;
  }

  private static final Predicate<Object> LEADS = line -> ((Line) line).isOpen;

  private RegionStore store() {
    RegionStore store = FakeShim.store(FakeShim::new, listing);
    store.useServer(PLAIN, named);
    return store;
  }

  private static List<String> judged(BarrierResult result) {
    return result.store("s").servers().stream()
        .filter(server -> !server.leftOut()).map(ServerResult::address).sorted().toList();
  }

  private static void assertJudged(String address, BarrierOptions options) {
    for (int turn = 0; turn < 3; turn++) {
      BarrierResult result = Antipode.barrier(options);
      assertThat(result.store("s").verdict()).as(result.explain()).isEqualTo(Verdict.TIMED_OUT);
      assertThat(judged(result)).contains(address);
    }
  }

  private static void assertLeft(String address) {
    EngineTest.until(() -> Antipode.barrier(PATIENT.timeout(Duration.ofSeconds(1))).satisfied());
    BarrierResult result = Antipode.barrier(PATIENT);
    assertThat(result.complete()).isFalse();
    assertThat(result.store("s").leftOut()).containsExactly(address);
    Antipode.configure(Settings.defaults().leftServer(Duration.ZERO));
    result = Antipode.barrier(PATIENT);
    assertThat(result.complete()).as(result.explain()).isTrue();
    assertThat(judged(result)).containsExactly("named");
    Antipode.configure(Settings.defaults());
  }

  @Test
  void aServerIsJudgedAsLongAsAConnectionLeadsThere_BAR_62_BAR_54() {
    RegionStore store = store();
    Line first = new Line();
    Line second = new Line();
    store.reach(PLAIN, old, first, LEADS);
    assertThat(store.reach(PLAIN, old, second, LEADS).address()).isEqualTo("old");
    assertJudged("old", HASTY);
    first.isOpen = false;
    assertJudged("old", HASTY);
    second.isOpen = false;
    assertLeft("old");
    second.isOpen = true;
    store.reach(PLAIN, old, second, LEADS);
    assertJudged("old", HASTY);
  }

  @Test
  void aConnectionThatIsMadeAnewElsewhere_BAR_62_BAR_52() {
    RegionStore store = store();
    Line line = new Line();
    store.reach(PLAIN, old, line, LEADS);
    assertJudged("old", HASTY);
    store.reach(PLAIN, new Fake("new", FakeShim.always(Visibility.NOT_YET)), line, LEADS);
    assertThat(judged(Antipode.barrier(HASTY))).contains("new");
    EngineTest.until(() -> judged(Antipode.barrier(HASTY)).equals(List.of("named", "new")));
  }

  @Test
  void aConnectionThatIsForgotten_BAR_62() {
    RegionStore store = store();
    Line line = new Line();
    store.reach(PLAIN, old, line, LEADS);
    assertJudged("old", HASTY);
    assertThat(line.isOpen).isTrue();
    line = null;
    EngineTest.until(() -> {
      System.gc();
      return Antipode.barrier(HASTY).satisfied();
    });
    assertLeft("old");
  }

  @Test
  void whoCannotTellLeadsThere_BAR_62() {
    RegionStore store = store();
    Line line = new Line();
    store.reach(PLAIN, old, line, connection -> {
      throw new IllegalStateException("no socket");
    });
    assertJudged("old", HASTY);
    assertThat(line.isOpen).isTrue();
  }

  @Test
  void aServerThatSomebodyNamesStays_BAR_62() {
    RegionStore store = store();
    Fake writer = new Fake("writer", FakeShim.always(Visibility.VISIBLE));
    store.useServer(listing, writer); // for reach replica, where no reader of the region is
    Line line = new Line();
    store.reach(PLAIN, named, line, LEADS);
    store.reach(listing, writer, line, LEADS);
    line.isOpen = false;
    for (int turn = 0; turn < 5; turn++) {
      BarrierResult result = Antipode.barrier(PATIENT);
      assertThat(result.complete()).as(result.explain()).isTrue();
      assertThat(judged(result)).containsExactly("named");
    }
    assertThat(judged(Antipode.barrier(PATIENT.reach(Reach.REPLICA)))).containsExactly("named", "writer");
  }

  @ParameterizedTest
  @EnumSource(value = Reach.class, names = {"REGION", "REPLICA"})
  void aWrapThatNamesTheReadersServers_BAR_22_BAR_54_BAR_62(Reach reach) {
    RegionStore store = FakeShim.store(FakeShim::new, listing);
    store.useServer(listing, named);
    Line line = new Line();
    store.reach(listing, old, line, LEADS);
    assertThat(Antipode.barrier(PATIENT).complete()).isTrue();
    assertJudged("old", HASTY.reach(Reach.REPLICA));
    line.isOpen = false;
    EngineTest.until(() -> Antipode.barrier(HASTY.reach(reach)).store("s").leftOut().equals(List.of("old")));
  }

  /** Readers may still go there; that a wrap with a list reaches it lets no barrier of the region ask it. */
  @Test
  void whatAListTakesAwayIsNamedAlthoughAWriterReachesIt_BAR_54() {
    Fake stays = new Fake("stays", FakeShim.always(Visibility.VISIBLE));
    Fake left = new Fake("left", FakeShim.always(Visibility.VISIBLE));
    Line line = new Line();
    StoreOptions asked = PLAIN.replicas(() -> line.isOpen ? List.of(stays, left) : List.of(stays));
    RegionStore store = FakeShim.store(FakeShim::new, asked);
    assertThat(Antipode.barrier(PATIENT).complete()).isTrue();
    line.isOpen = false;
    EngineTest.until(() -> !Antipode.barrier(PATIENT).complete());
    store.reach(asked, left, line, same -> true);
    for (int turn = 0; turn < 3; turn++) {
      assertThat(Antipode.barrier(PATIENT).store("s").leftOut()).containsExactly("left");
    }
  }

  /** Its servers' positions prove something. */
  private static final class ProvingShim extends FakeShim {
    @Override
    public Capabilities capabilities() {
      return Capabilities.positions();
    }

    @Override
    public List<Visibility> visible(List<WriteId> ids, Server server) throws Exception {
      List<Visibility> answers = super.visible(ids, server);
      server.applied("instance", "e", Map.of("e", answers.contains(Visibility.VISIBLE) ? 9L : 5L));
      return answers;
    }
  }

  private static boolean isFree() {
    return Antipode.barrier() == Antipode.barrier();
  }

  @Test
  void theFreePathDoesNotPassOnTheServersOfBefore_BAR_62_BAR_35() {
    Discovery.hurry(TimeUnit.SECONDS.toNanos(60), TimeUnit.SECONDS.toNanos(60));
    Antipode.configure(Settings.defaults().freePathTtl(Duration.ofSeconds(60)));
    RegionStore store = FakeShim.store(ProvingShim::new, PLAIN.replicas(List.of(named)));
    Line line = new Line();
    try (LineageScope scope = Antipode.scope(Lineage.of(WriteId.position("s", "e", 7)))) {
      assertThat(scope).isNotNull();
      EngineTest.until(ReachedServersTest::isFree);
      store.reach(PLAIN, old, line, LEADS);
      assertThat(Antipode.barrier(
          BarrierOptions.defaults().timeout(Duration.ofMillis(100)).onTimeout(Policy.PROCEED)).satisfied()).isFalse();
      old.answer = FakeShim.always(Visibility.VISIBLE);
      EngineTest.until(ReachedServersTest::isFree);
      line.isOpen = false;
      Discovery.hurry(0, TimeUnit.SECONDS.toNanos(60));
      EngineTest.until(() -> Antipode.barrier().store("s").leftOut().equals(List.of("old")));
    }
  }
}
