package dev.antipode.internal.engine;

import static dev.antipode.internal.engine.EngineTest.until;
import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.Lineage;
import dev.antipode.Opaque;
import dev.antipode.Policy;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import java.io.IOException;
import java.net.ConnectException;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The next connection to a server is opened beside the one that answers (BAR-55, BAR-69). */
@ExtendWith(AntipodeIsolated.class)
class RenewalTest {
  private static final Duration LIFE = Duration.ofMinutes(10);
  private static final Duration LATE = LIFE.dividedBy(20); // so much is left when the next one is due
  private static final Duration LONG = Duration.ofSeconds(30);

  private final AtomicInteger numbers = new AtomicInteger();
  private final AtomicInteger begun = new AtomicInteger();
  private final List<Connection> made = new CopyOnWriteArrayList<>();
  private final CountDownLatch gate = new CountDownLatch(1); // holds the next connection back
  private volatile String leadsTo = "old";
  private volatile String renewedTo; // null for where the address leads
  private volatile IOException fault;
  private ServerEngine server;

  /** It goes where the address led when it was made. */
  private final class Connection implements AutoCloseable {
    private final String leadsTo;
    private final Thread openedBy = Thread.currentThread();
    private volatile boolean isClosed;

    Connection(String leadsTo) {
      this.leadsTo = leadsTo;
      made.add(this);
    }

    @Override
    public void close() {
      isClosed = true;
    }
  }

  private final class RenewingShim extends FakeShim {
    @Override
    public List<Visibility> visible(List<WriteId> ids, Server asked) throws Exception {
      if (asked.session() == null) {
        asked.session(new Connection(leadsTo));
      }
      Connection connection = (Connection) asked.session();
      assertThat(connection.isClosed).isFalse();
      boolean isOld = connection.leadsTo.equals("old");
      return Collections.nCopies(ids.size(), isOld ? Visibility.VISIBLE : Visibility.NOT_YET);
    }

    @Override
    public boolean renews() {
      return true;
    }

    @Override
    public AutoCloseable renew(Server asked) throws Exception {
      begun.incrementAndGet();
      gate.await(1, TimeUnit.MINUTES);
      if (fault != null) {
        throw fault;
      }
      return new Connection(renewedTo == null ? leadsTo : renewedTo);
    }

    @Override
    public void close(Server asked) {
      Connection connection = (Connection) asked.session();
      asked.session(null);
      if (connection != null) {
        connection.close();
      }
    }
  }

  @BeforeEach
  void register() {
    Antipode.configure(Settings.defaults().reconnect(LIFE).freePathTtl(Duration.ZERO));
    Fake target = new Fake("vip", FakeShim.DOWN);
    server = FakeShim.store(RenewingShim::new, StoreOptions.named("s").replicas(List.of(target))).servers(false).get(0);
    assertThat(shows(LONG)).isTrue();
  }

  @AfterEach
  void open() {
    gate.countDown();
  }

  /** Return whether a barrier for a write that nobody has asked for is satisfied. */
  private boolean shows(Duration timeout) {
    Lineage lineage = Lineage.of(new WriteId("s", "k" + numbers.incrementAndGet(), new Opaque("1")));
    return Antipode.barrier(BarrierOptions.defaults().lineage(lineage).timeout(timeout).onTimeout(Policy.PROCEED)).satisfied();
  }

  private void showsAgain(int times) {
    for (int turn = 0; turn < times; turn++) {
      assertThat(shows(LONG)).isTrue();
    }
  }

  /** Its connection has so much time left. */
  private void leave(Duration left) {
    server.renewal().madeAt(Ticks.now() - LIFE.minus(left).toNanos());
  }

  private void beginTheNext() {
    leave(LATE);
    assertThat(shows(LONG)).isTrue();
    until(() -> begun.get() == 1);
  }

  @Test
  void theOneThatIsThereAnswersUntilTheNextOneStands_BAR_69() {
    beginTheNext();
    showsAgain(20);
    assertThat(made).hasSize(1);
    final int generation = server.generation();
    gate.countDown();
    until(() -> shows(LONG) && made.size() == 2 && server.session() == made.get(1));
    assertThat(made.get(0).isClosed).isTrue();
    assertThat(made.get(1).openedBy).isNotSameAs(made.get(0).openedBy);
    assertThat(server.generation()).as("what the old one proved is dropped (BAR-33)").isGreaterThan(generation);
    assertThat(begun).as("its time begins anew").hasValue(1);
  }

  /** The address leads to another server by then. */
  @Test
  void whatItProvedIsNoAnswerOfTheNextOne_BAR_55_BAR_33() {
    leadsTo = "new";
    beginTheNext();
    gate.countDown();
    until(() -> !shows(Duration.ofMillis(50)));
  }

  /** However long the next one takes; that is closed when it comes after all. */
  @Test
  void behindItsTimeItAnswersNothing_BAR_55_BAR_69() {
    beginTheNext();
    leadsTo = "new";
    leave(Duration.ZERO);
    assertThat(shows(Duration.ofSeconds(2))).isFalse();
    until(() -> made.size() > 1 && server.session() == made.get(1));
    gate.countDown();
    until(() -> made.size() == 3 && made.get(2).isClosed);
    assertThat(made.get(1).isClosed).isFalse();
  }

  /** It stood there while nobody asked, or while the process was paused. */
  @Test
  void theNextOneAnswersNothingBehindItsOwnTime_BAR_55_BAR_69() {
    beginTheNext();
    until(() -> server.renewal().next() != null);
    ConnectionAttempt opening = server.renewal().next();
    opening.beganAt(opening.beganAt() - LIFE.toNanos());
    leadsTo = "new";
    renewedTo = "old"; // that was looked up before
    gate.countDown();
    until(opening::isOver);
    assertThat(shows(Duration.ofSeconds(2))).isFalse();
    assertThat(opening.take()).isNull();
    assertThat(made.get(1).isClosed).isTrue();
  }

  /** The server answers by the other one; behind that one's time the thread that asks opens one. */
  @Test
  void oneThatCannotBeOpenedIsNoSilence_BAR_69_BAR_26() {
    Antipode.configure(
        Settings.defaults().reconnect(LIFE).freePathTtl(Duration.ZERO).replicaOutAfter(Duration.ofMillis(10)));
    fault = new ConnectException("too many connections");
    gate.countDown();
    beginTheNext();
    showsAgain(20);
    assertThat(server.down()).isEmpty();
    assertThat(begun).as("it is not tried again and again").hasValue(1);
    leave(Duration.ZERO);
    assertThat(shows(LONG)).isTrue();
    assertThat(made).hasSize(2);
  }

  /** The server was given up while it was opened, or just behind. */
  @Test
  void oneThatNobodyWantsAnyMoreIsClosed_BAR_69() {
    beginTheNext();
    server.retire();
    gate.countDown();
    until(() -> made.size() == 2 && made.get(1).isClosed);
    ConnectionAttempt opening = new ConnectionAttempt(server);
    opening.run();
    opening.giveUp();
    assertThat(made.get(2).isClosed).isTrue();
  }
}
