package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.antipode.lab.Repository;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which statements dry-run may send once more, by their text (REC-23): the same as in the other languages. */
class RepeatableTest {
  private static final String KIND = "repeatable-statements";

  private static Stream<JsonNode> all() throws IOException {
    JsonNode file = new ObjectMapper()
        .readTree(Repository.root().resolve("spec/vectors").resolve(KIND + ".json").toFile());
    assertThat(file.get("kind").asText()).isEqualTo(KIND);
    return StreamSupport.stream(file.get("cases").spliterator(), false)
        .filter(each -> StreamSupport.stream(each.get("dialects").spliterator(), false)
            .anyMatch(dialect -> dialect.asText().equals("postgresql")));
  }

  static Stream<Arguments> cases() throws IOException {
    return all().map(each -> Arguments.of(each.get("id").asText(), each));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("cases")
  void whichMayBeSentOnceMore(String id, JsonNode each) {
    assertThat(Repeatable.is(each.get("statement").asText())).as(id).isEqualTo(each.get("repeatable").asBoolean());
  }

  /** REC-23: those words, and no others. */
  @Test
  void theWordsBeforeAParenthesis() throws IOException {
    Set<String> named = new HashSet<>();
    all().filter(each -> each.get("id").asText().startsWith("word-") && each.get("repeatable").asBoolean())
        .map(each -> each.get("statement").asText())
        .filter(text -> text.startsWith("SELECT a "))
        .forEach(text -> named.add(text.replaceAll("SELECT a (\\w+) .*", "$1")));
    assertThat(Repeatable.BEFORE_PARENTHESIS).isEqualTo(named);
  }

  /** What only JDBC has, and what only PostgreSQL does. */
  @ParameterizedTest
  @CsvSource(quoteCharacter = '`', value = {
      "SELECT text FROM posts WHERE id = ?,true", "SELECT {fn now()} FROM posts,false", "{call publish(?)},false",
      "`SELECT * FROM posts WHERE day = {d '2026-01-01'}`,true", "(SELECT * FROM posts),false",
      "SELECT U&\"f\"(id) FROM posts,false", "SELECT U&\"f\" UESCAPE '!' (id) FROM posts,false",
      "`SELECT * FROM posts WHERE text LIKE 'a\\_b'`,true", "SELECT * FROM posts WHERE a := 1,false",
      "`SELECT * FROM posts WHERE text = '\\'' OR id = now() --'`,false", "SELECT * FROM posts;;,true", ";,false",
      "SELECT(id) FROM posts,true", "SELECT 1a FROM posts,false", "SELECT id FROM posts WHERE id = ?a,false",
      "SELECT id FROM posts WHERE id = $1a,false", "SELECT \"1a\" FROM posts_1a,true", "SELECT 0b1 FROM posts,false"})
  void others(String text, boolean isRepeatable) {
    assertThat(Repeatable.is(text)).isEqualTo(isRepeatable);
  }

  /** REC-13: a text costs the application what its length does, whatever stands in it. */
  @ParameterizedTest
  @ValueSource(strings = {"/*", "(", "'a\\' ", "a(", "\"a\"\"\"", "$a$ ", ";", "order ", "1_", "\""})
  void aLongStatement(String part) {
    long begun = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    Repeatable.is("SELECT 1 " + part.repeat(20_000));
    long spent = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - begun;
    assertThat(spent).isLessThan(TimeUnit.SECONDS.toNanos(5));
  }
}
