package dev.antipode.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Settings;
import dev.antipode.internal.trust.Judgement;
import dev.antipode.internal.trust.TrustSettings;
import dev.antipode.testing.AntipodeIsolated;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The host of a target, the same as Python's (TRUST-15). */
@ExtendWith(AntipodeIsolated.class)
class TargetsTest {
  @ParameterizedTest
  @CsvSource({
    "post-storage:9090, post-storage:9090",
    "post-storage, post-storage",
    "dns:///post-storage:9090, post-storage:9090",
    "dns://8.8.8.8/api.example.com:443, api.example.com:443",
    "dns:api.example.com, api.example.com",
    "passthrough:///10.0.0.1:50051, passthrough:///10.0.0.1:50051",
    "xds:///api.example.com, xds:///api.example.com",
    "xds:/posts, xds:///posts",
    "unix:/run/app.sock, 127.0.0.1",
    "unix:///run/app.sock, 127.0.0.1",
    "unix-abstract:app, 127.0.0.1",
    "ipv4:10.0.0.1:50051, 10.0.0.1:50051",
    "'ipv4:10.0.0.1:1,203.0.113.9:2', 203.0.113.9:2",
    "ipv6:[::1]:50051, [::1]:50051",
    "[::1]:50051, [::1]:50051",
  })
  void hostOfATarget(String target, String host) {
    assertThat(Targets.host(target)).isEqualTo(host);
  }

  /** TRUST-35: a name without a dot behind a resolver that we do not know is nobody's. */
  @ParameterizedTest
  @CsvSource({"xds:///svc", "passthrough:///10.0.0.1:50051", "consul:///posts", "etcd://10.0.0.9/posts"})
  void aResolverThatWeDoNotKnow(String target) {
    TrustSettings trust = TrustSettings.inForce();
    assertThat(Judgement.requestOut(Targets.host(target), trust).accepted()).isFalse();
    Antipode.configure(Settings.defaults().peers("svc", "posts", "10.0.0.0/8"));
    assertThat(Judgement.requestOut(Targets.host(target), TrustSettings.inForce()).accepted()).isFalse();
    Antipode.configure(Settings.defaults().peers(target));
    assertThat(Judgement.requestOut(Targets.host(target), TrustSettings.inForce()).accepted()).isTrue();
    assertThat(Judgement.requestOut("api.example.com", TrustSettings.inForce()).accepted()).isFalse();
  }
}
