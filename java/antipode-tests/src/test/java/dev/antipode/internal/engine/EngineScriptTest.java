package dev.antipode.internal.engine;

import java.io.IOException;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The vectors {@code engine-script}, on the real engine. */
class EngineScriptTest {
  @TestFactory
  Stream<DynamicTest> engineScript() throws IOException {
    return BarrierVectorsTest.each("engine-script", EngineScript::run);
  }
}
