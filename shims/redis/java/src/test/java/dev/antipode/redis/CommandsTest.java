package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What commands may do that have several forms (SHIM-43, SHIM-44). */
class CommandsTest {
  @ParameterizedTest
  @CsvSource({
    "memory usage k, READ",
    "MEMORY STATS, OTHER",
    "CLUSTER GETKEYSINSLOT 1 1, READ",
    "CLUSTER INFO, OTHER",
    "FUNCTION LOAD x, WRITE",
    "NEW.COMMAND, MAYBE"
  })
  void formsAreToldApart(String text, Commands.Kind kind) {
    Object[] words = text.split(" ");
    assertThat(Commands.classify(CommandWords.of(words))).isEqualTo(kind);
  }
}
