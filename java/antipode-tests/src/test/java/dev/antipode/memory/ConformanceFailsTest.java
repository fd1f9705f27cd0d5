package dev.antipode.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.testing.ShimConformance;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.discovery.MethodSelector;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/** The conformance kit is able to fail: each broken shim is caught, by the case that is there for it (SHIM-33). */
class ConformanceFailsTest {
  private static final List<String> CHOSEN = List.of(
      "partitionedReplica", "oldVersion", "promotionWithLostWrites", "unknownOutcome", "recreate",
      "readingCoversTheValueRead", "write", "exceptionsAreCases");

  static Stream<Arguments> broken() {
    return Stream.of(
        Arguments.of(BrokenShims.PassesAlways.class, "partitionedReplica"),
        Arguments.of(BrokenShims.ComparesKeysOnly.class, "oldVersion"),
        Arguments.of(BrokenShims.IgnoresEpochs.class, "promotionWithLostWrites"),
        Arguments.of(BrokenShims.ForgetsPending.class, "unknownOutcome"),
        Arguments.of(BrokenShims.RepeatsVersions.class, "recreate"),
        Arguments.of(BrokenShims.CoversNothingRead.class, "readingCoversTheValueRead"),
        Arguments.of(BrokenShims.HasStaleExceptions.class, "write"),
        Arguments.of(BrokenShims.HasStaleExceptions.class, "exceptionsAreCases"));
  }

  @ParameterizedTest
  @MethodSource("broken")
  void aBrokenShimIsCaught(Class<? extends ShimConformance> shim, String name) {
    assertThat(failed(shim, List.of(name))).containsExactly(name);
  }

  @Test
  void aSoundShimPasses() {
    assertThat(failed(BrokenShims.Sound.class, CHOSEN)).isEmpty();
  }

  /** The cases of these names that fail. */
  private static Set<String> failed(Class<? extends ShimConformance> shim, List<String> names) {
    List<MethodSelector> cases =
        names.stream().map(name -> DiscoverySelectors.selectMethod(shim.getName() + "#" + name)).toList();
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    LauncherFactory.create().execute(
        LauncherDiscoveryRequestBuilder.request().selectors(cases).build(), listener);
    TestExecutionSummary summary = listener.getSummary();
    assertThat(summary.getTestsFoundCount()).isEqualTo(names.size());
    return summary.getFailures().stream()
        .map(failure -> failure.getTestIdentifier().getDisplayName().replace("()", ""))
        .collect(Collectors.toSet());
  }
}
