package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** What a statement may do, by its text (SHIM-6): the same as in the other languages. */
class StatementsTest {
  static List<Arguments> texts() throws IOException {
    JsonNode all = new ObjectMapper().readTree(Path.of("..", "statements.json").toFile());
    List<Arguments> found = new ArrayList<>();
    for (Kind kind : Kind.values()) {
      JsonNode texts = all.path(kind.name().toLowerCase(Locale.ROOT));
      assertThat(texts).as(kind.name()).isNotEmpty();
      texts.forEach(text -> found.add(Arguments.of(text.asText(), kind)));
    }
    return found;
  }

  @ParameterizedTest
  @MethodSource("texts")
  void whatAStatementMayDo(String text, Kind kind) {
    assertThat(Statements.classify(text)).isEqualTo(kind);
    if (kind != Kind.MAYBE) {
      assertThat(Statements.classify(text.toUpperCase(Locale.ROOT))).isEqualTo(kind);
    }
  }

  @ParameterizedTest
  @MethodSource("unended")
  void whatDoesNotEndMayWrite(String text) {
    assertThat(Statements.classify(text)).isEqualTo(Kind.MAYBE);
  }

  static List<String> unended() {
    return List.of("SELECT 'open", "SELECT /* open", "SELECT /* /* */ open", "SELECT $x$ open", "SELECT \"open");
  }

  private static JsonNode all() throws IOException {
    return new ObjectMapper().readTree(Path.of("..", "statements.json").toFile());
  }

  @Test
  void whatMayReturnDataOrWriteWhatItHasReadWaits_SHIM_44() throws IOException {
    all().get("may_read").forEach(text ->
        assertThat(Statements.classify(text.asText()).mayRead(text.asText())).as(text.asText()).isTrue());
    all().get("blind").forEach(text ->
        assertThat(Statements.classify(text.asText()).mayRead(text.asText())).as(text.asText()).isFalse());
  }

  @Test
  void whatARecordedHistoryIsToldOfAsOfReads_HIST_36() throws IOException {
    all().get("noted")
        .forEach(text -> assertThat(Statements.isNoted(text.asText())).as(text.asText()).isTrue());
    all().get("not_noted")
        .forEach(text -> assertThat(Statements.isNoted(text.asText())).as(text.asText()).isFalse());
    for (String jdbc : List.of("SELECT * FROM {oj a LEFT OUTER JOIN b ON a.i = b.i}", "{call p(?)}", "{? = call f(?)}")) {
      assertThat(Statements.isNoted(jdbc)).as(jdbc).isTrue();
    }
    assertThat(Statements.isNoted(null)).isTrue();
  }

  @Test
  void theDatabaseIsAskedWhatEachLanguageAsks_SHIM_43() throws IOException {
    List<String> lines = new ArrayList<>();
    all().get("unsure_question").forEach(line -> lines.add(line.asText()));
    assertThat(UnsureNames.QUESTION.strip()).isEqualTo(String.join("\n", lines).strip());
  }

  @Test
  void whatTheDatabaseHasMakesTextsUnsure_SHIM_43() throws IOException {
    for (JsonNode each : all().get("unsure")) {
      List<String[]> rows = new ArrayList<>();
      each.get("has").forEach(row -> rows.add(new String[] {row.get(0).asText(), row.get(1).asText()}));
      UnsureNames unsure = UnsureNames.of(rows);
      each.get("unsure").forEach(text -> assertThat(unsure.classify(text.asText())).as(text.asText()).isEqualTo(Kind.MAYBE));
      each.get("sure").forEach(text -> assertThat(unsure.classify(text.asText())).as(text.asText()).isEqualTo(Kind.READ));
    }
  }
}
