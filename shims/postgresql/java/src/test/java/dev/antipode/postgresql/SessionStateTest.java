package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which statements change a session, by their text (REC-23). */
class SessionStateTest {
  @ParameterizedTest
  @CsvSource(delimiter = '|', quoteCharacter = '`', value = {
      "SET search_path = tenant | SESSION", "/* blog */ set role reader; | SESSION", "SET SESSION x = 1 | SESSION",
      "BEGIN; SET search_path = tenant | SESSION", "SELECT set_config('search_path', 'tenant', false) | SESSION",
      "SET LOCAL work_mem = '8MB' | TRANSACTION", "SET TRANSACTION READ ONLY | TRANSACTION",
      "SET LOCAL a = 1; SET b = 2 | SESSION", "SET a = ' | SESSION", "SET LOCAL a = '\\'; SET b = 'c' | SESSION",
      "BEGIN | NONE", "RESET ALL | NONE", "ALTER TABLE posts SET LOGGED | NONE", "SELECT 'set_config' | NONE",
      "UPDATE posts SET a = 1; UPDATE posts SET b = 2 | NONE"})
  void byText(String text, SessionState.Change change) {
    assertThat(SessionState.judge(text)).isEqualTo(change);
  }
}
