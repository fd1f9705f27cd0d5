package dev.antipode.barrier;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketException;
import org.junit.jupiter.api.Test;

/** BAR-61: a fault of this process is known through the errors of clients. */
class OwnFaultTest {
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
}
