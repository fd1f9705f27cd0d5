package dev.antipode.rabbitmq;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.lab.Repository;
import dev.antipode.shim.Shims;
import java.io.IOException;
import java.nio.file.Files;
import org.junit.jupiter.api.Test;

/** The store's page says what it has to; whether that is right is for readers to judge. */
class PageTest {
  @Test
  void saysWhatItHasTo_SHIM_22() throws IOException {
    String page = Files.readString(Repository.root().resolve("shims/rabbitmq/README.md"));
    assertThat(page.lines()).contains(
        "## What a version is",
        "## What visible means, and how it is waited for",
        "## What it costs",
        "## What it needs from the broker",
        "## Failover, restarts, restores",
        "## What it cannot do",
        "## Java");
  }

  @Test
  void theShimIsFoundByServiceLoader() {
    assertThat(Shims.kinds()).contains("rabbitmq");
  }
}
