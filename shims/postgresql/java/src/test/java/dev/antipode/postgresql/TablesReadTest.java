package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.antipode.lab.Repository;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Of which tables a statement reads, by its text (HIST-36): the same as in the other languages. */
class TablesReadTest {
  static List<Arguments> cases() throws IOException {
    String kind = "history-tables";
    JsonNode all = new ObjectMapper()
        .readTree(Repository.root().resolve("spec/vectors").resolve(kind + ".json").toFile());
    assertThat(all.get("kind").asText()).isEqualTo(kind);
    assertThat(all.get("cases")).isNotEmpty();
    List<Arguments> found = new ArrayList<>();
    all.get("cases").forEach(each -> found.add(Arguments.of(each.get("id").asText(), each)));
    return found;
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("cases")
  void whichTablesAStatementReads(String id, JsonNode each) {
    List<String> wanted = new ArrayList<>();
    each.get("tables").forEach(table -> wanted.add(table.asText()));
    assertThat(TablesRead.of(each.get("statement").asText())).as(id).isEqualTo(wanted);
  }

  /** The driver takes the braces out before it sends the text. */
  @Test
  void jdbcsOwnForms() {
    assertThat(TablesRead.of("SELECT * FROM {oj a LEFT OUTER JOIN b ON a.i = b.i} WHERE i = {fn now()}"))
        .containsExactly("a", "b");
    assertThat(TablesRead.of("{call my_procedure(?)}")).isEqualTo(TablesRead.UNNAMED);
    assertThat(TablesRead.of("{? = call my_function(?)}")).isEqualTo(TablesRead.UNNAMED);
    assertThat(TablesRead.of("SELECT * FROM posts WHERE tags ?? 'from secret'")).containsExactly("posts");
  }

  /** HIST-24: a text costs what its length does, whatever stands in it. */
  @ParameterizedTest
  @CsvSource(quoteCharacter = '`', value = {
      "/*,20000", "(,20000", "WITH x (,20000", "`FROM a,`,20000", "E'a\\' ,20001", "FROM a.b ,20000", "\"a\"\"\",20000",
      "$a$ ,20001"})
  void aLongStatement(String part, int times) {
    long begun = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    TablesRead.of("SELECT 1 " + part.repeat(times));
    long spent = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - begun;
    assertThat(spent).isLessThan(TimeUnit.SECONDS.toNanos(5));
  }
}
