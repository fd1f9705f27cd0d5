package dev.antipode.vectors;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.internal.diagnostics.dryrun.RecordsVectors;
import dev.antipode.internal.diagnostics.history.HistoryVectors;
import dev.antipode.propagation.PropagationVectors;
import dev.antipode.testing.Isolated;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicContainer;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * Every file of {@code spec/vectors}: by its kind, each case is a test. A kind that nothing here knows fails.
 *
 * <p>The kinds of the engine are run in {@code dev.antipode.internal.engine.BarrierVectorsTest}, those of one store in its shim.
 */
class VectorsTest {
  private static final Set<String> OF_OTHERS =
      Set.of("barrier-result", "barrier-policy", "epoch-judge", "engine-script", "history-" + "value");
  private static final Set<String> NOT_THERE_YET = Set.of("throttle-" + "pie", "throttle-" + "limit", "throttle-" + "permit");

  private static Map<String, Consumer<Vector>> kinds() {
    Map<String, Consumer<Vector>> kinds = new HashMap<>();
    kinds.putAll(WireVectors.KINDS);
    kinds.putAll(LineageVectors.KINDS);
    kinds.putAll(TrustVectors.KINDS);
    kinds.putAll(OtherVectors.KINDS);
    HistoryVectors.KINDS.forEach((kind, run) -> kinds.put(kind, vector -> run.accept(vector.json())));
    RecordsVectors.KINDS.forEach((kind, run) -> kinds.put(kind, vector -> run.accept(vector.json())));
    PropagationVectors.KINDS.forEach((kind, run) -> kinds.put(kind, vector -> run.accept(vector.json())));
    return kinds;
  }

  @TestFactory
  Stream<DynamicContainer> vectors() throws IOException {
    Map<String, Consumer<Vector>> kinds = kinds();
    Map<String, Path> files = new TreeMap<>(Vector.files());
    assertThat(files.keySet()).containsAll(kinds.keySet()).containsAll(OF_OTHERS);
    files.keySet().removeAll(OF_OTHERS);
    files.keySet().removeAll(NOT_THERE_YET); // as spec/uncited.json says
    return files.entrySet().stream().map(file -> DynamicContainer.dynamicContainer(
        file.getKey(), tests(file.getKey(), file.getValue(), kinds.get(file.getKey()))));
  }

  private static Stream<DynamicTest> tests(String kind, Path file, Consumer<Vector> run) {
    if (run == null) {
      return Stream.of(DynamicTest.dynamicTest("is known", () -> {
        throw new AssertionError("vectors of a kind that this runner does not know: " + kind);
      }));
    }
    try {
      return Vector.read(file).stream().map(vector -> DynamicTest.dynamicTest(vector.id(), () -> {
        try (Isolated isolated = new Isolated()) {
          run.accept(vector);
        }
      }));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
