package dev.antipode.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class LabTest {
  @Test
  void isUpAndPromotesAndLeavesNothing() throws Exception {
    Lab lab = Lab.of("redis").replicas(1).lag("5ms").up();
    LabServer first;
    try (lab) {
      first = lab.server("redis", "a");
      assertThat(lab.primary("redis")).isEqualTo("a");
      try (Socket socket = new Socket()) {
        socket.connect(new InetSocketAddress(first.host(), first.port()), 1000);
      }
      AtomicInteger calls = new AtomicInteger();
      lab.promoteLosing("redis", "b1", calls::incrementAndGet);
      assertThat(calls).hasValue(1);
      assertThat(lab.primary("redis")).isEqualTo("b1");
      assertThatThrownBy(() -> lab.freeze("redis", "b9")).isInstanceOf(LabException.class).hasMessageContaining("b9");
    }
    assertThat(ProcessHandle.of(first.pid()).map(ProcessHandle::isAlive).orElse(false)).isFalse();
    assertThat(Files.exists(lab.endpoints())).isFalse();
  }
}
