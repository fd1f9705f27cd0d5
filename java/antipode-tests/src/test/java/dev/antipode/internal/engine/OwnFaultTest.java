package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierResult;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.StoreResult;
import dev.antipode.UnprovenKind;
import dev.antipode.internal.engine.EngineTest.Log;
import dev.antipode.internal.engine.EngineTest.LogShim;
import dev.antipode.lab.CallFaults;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.Watch;
import dev.antipode.testing.AntipodeIsolated;
import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** BAR-61: a fault of this process is known through the errors of clients, and is no server's silence. */
@ExtendWith(AntipodeIsolated.class)
class OwnFaultTest {
  private static volatile boolean closes;
  private static volatile Server watched;

  /** A shim whose connections cannot be given up while the process is in trouble. */
  private static final class LeakyShim extends LogShim {
    @Override
    public void close(Server server) {
      if (!closes) {
        throw new OutOfMemoryError("no memory to close");
      }
    }
  }

  /** A shim with a push channel. */
  private static final class PushShim extends LogShim {
    @Override
    public Capabilities capabilities() {
      return super.capabilities().push(true);
    }

    @Override
    public Watch watch(Server server) {
      watched = server;
      return () -> { };
    }
  }

  @Test
  void aFaultIsKnownThroughItsClientsError() {
    assertThat(OwnFault.is(new IllegalStateException("no connection", new SocketException("Too many open files")))).isTrue();
    assertThat(OwnFault.is(new IOException("x", new OutOfMemoryError("Java heap space")))).isTrue();
    assertThat(OwnFault.is(new OutOfMemoryError("unable to create native thread"))).isTrue();
  }

  @Test
  void aServerThatIsAwayIsNoneAndRingOfCausesEnds() {
    ConnectException away = new ConnectException("Connection refused");
    away.initCause(new IOException("no", away));
    assertThat(OwnFault.is(away)).isFalse();
  }

  @Test
  void whoWaitsIsToldWhereTheConnectionCannotBeGivenUpEither_BAR_61() {
    closes = false;
    Log log = new Log();
    FakeShim.store(LeakyShim::new, StoreOptions.named("log").replicas(log));
    log.answer = (ids, server) -> {
      throw new OutOfMemoryError("no memory to ask");
    };
    StoreResult told = EngineTest.wait(EngineTest.at(1), EngineTest.LONG).store("log");
    assertThat(told.kind()).isEqualTo(UnprovenKind.OWN_FAULT);
    log.answer = FakeShim.always(Visibility.VISIBLE);
    closes = true;
    EngineTest.until(() -> EngineTest.wait(EngineTest.at(1), Duration.ofSeconds(5)).complete());
  }

  /** A push channel whose reader had no memory is no silence of the server, which would be left out of the pass. */
  @Test
  void aPushChannelThatEndsByAFaultOfOursLeavesNothingOut_BAR_61() {
    Antipode.configure(Settings.defaults().replicaOutAfter(Duration.ZERO));
    watched = null;
    Log log = new Log();
    log.answer = FakeShim.always(Visibility.NOT_YET);
    FakeShim.store(PushShim::new, StoreOptions.named("log").replicas(log));
    CompletableFuture<BarrierResult> waiting = Replica.waiting(EngineTest.proceeding(EngineTest.at(1), EngineTest.LONG));
    EngineTest.until(() -> watched != null);
    watched.broken(new IOException("the reader ended", new OutOfMemoryError("Java heap space")));
    StoreResult told = waiting.join().store("log");
    assertThat(told.leftOut()).isEmpty();
    assertThat(told.kind()).isEqualTo(UnprovenKind.OWN_FAULT);
  }

  /** No thread of Antipode's can be started: nothing of the application's fails, hangs, or is followed without an end. */
  @ParameterizedTest
  @ValueSource(strings = {"read", "barrier", "unknown server"})
  void aThreadCannotBeStarted_BAR_61(String what, @TempDir Path folder) throws Exception {
    CallFaults.EndedProcess ended = CallFaults.run(folder, 100, ThreadlessProcess.class, what,
        folder.resolve("records").toString());
    assertThat(ended.exit()).as(ended.said()).isZero();
  }
}
