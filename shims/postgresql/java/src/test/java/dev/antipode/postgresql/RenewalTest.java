package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.Lineage;
import dev.antipode.Policy;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.SocketFactory;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;

/** The next connection to a server is opened beside the one that answers (BAR-69). */
class RenewalTest extends QuietRegion {
  private static final AtomicInteger HELD = new AtomicInteger();
  private static volatile CountDownLatch gate = new CountDownLatch(0);

  /** Its sockets connect when the gate is open. */
  public static final class Gated extends SocketFactory {
    @Override
    public Socket createSocket() {
      return new Socket() {
        @Override
        public void connect(SocketAddress place, int timeout) throws IOException {
          if (gate.getCount() > 0) {
            HELD.incrementAndGet();
          }
          try {
            gate.await();
          } catch (InterruptedException error) {
            throw new IOException(error);
          }
          super.connect(place, timeout);
        }
      };
    }

    @Override
    public Socket createSocket(String host, int port) {
      throw new UnsupportedOperationException();
    }

    @Override
    public Socket createSocket(String host, int port, InetAddress local, int localPort) {
      throw new UnsupportedOperationException();
    }

    @Override
    public Socket createSocket(InetAddress host, int port) {
      throw new UnsupportedOperationException();
    }

    @Override
    public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort) {
      throw new UnsupportedOperationException();
    }
  }

  private static boolean passes(DataSource writer, Duration timeout) {
    Lineage lineage = Region.inScope(writer, connection -> Region.update(connection, Region.INSERT, newKey(), "v"));
    BarrierOptions options = BarrierOptions.defaults().lineage(lineage).timeout(timeout);
    return Antipode.barrier(options.onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED)).satisfied();
  }

  /** Nobody stands still while it is opened, however long that takes. */
  @Test
  void theOneThatIsThereAnswersUntilTheNextOneStands_BAR_69() {
    Antipode.configure(Settings.defaults().reconnect(Duration.ofSeconds(15)));
    String replica = region().jdbc("b1") + "?socketFactory=" + Gated.class.getName();
    DataSource writer = region().wrap("a", StoreOptions.named("renewed").replicas(replica));
    Region.until(() -> passes(writer, Duration.ofSeconds(1)), "it passes");
    gate = new CountDownLatch(1);
    try {
      Region.until(() -> passes(writer, Duration.ofSeconds(1)) && HELD.get() > 0, "it is renewed");
      assertThat(passes(writer, Duration.ofSeconds(1))).isTrue();
      assertThat(HELD).hasValue(1);
      gate.countDown();
      Region.until(() -> passes(writer, Duration.ofSeconds(1)), "it goes on");
    } finally {
      gate.countDown();
    }
  }
}
