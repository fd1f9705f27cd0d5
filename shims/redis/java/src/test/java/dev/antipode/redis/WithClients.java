package dev.antipode.redis;

import dev.antipode.StoreOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests that hold for each client, on one lab of two replicas. */
@ParameterizedClass
@EnumSource(ClientKind.class)
abstract class WithClients extends WithServers {
  @Parameter
  ClientKind kind;

  private final List<TestClient> made = new ArrayList<>();

  @AfterEach
  void closeWrapped() {
    made.forEach(TestClient::close);
  }

  /** A wrapped client of the primary. */
  TestClient posts(StoreOptions options) {
    return at("a", options);
  }

  /** A wrapped client of the primary, with both replicas. */
  TestClient posts() {
    return posts(options());
  }

  /** A wrapped client of a server. */
  TestClient at(String server, StoreOptions options) {
    return kept(kind.wrap(servers.url(server), options));
  }

  /** A wrapped client of the primary that gives up soon. */
  TestClient hasty() {
    return kept(kind.wrap(servers.url("a"), Duration.ofSeconds(1), options()));
  }

  /** A wrapped client of a server that waits long for replies. */
  TestClient patient(String server) {
    return kept(kind.wrap(servers.url(server), Duration.ofSeconds(20), options()));
  }

  private TestClient kept(TestClient client) {
    made.add(client);
    return client;
  }
}
