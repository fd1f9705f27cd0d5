package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Locale;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** What a statement may do, by its text (SHIM-6). */
class StatementsTest {
  private static final String[] READS = {
    "SELECT 1",
    "select * from posts where key in (?, 'b')",
    "SELECT count(*), max(x) FROM t",
    "-- why\nSELECT 1",
    "/* a comment; with this */ SELECT 1",
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "SHOW all",
    "VALUES (1), (2)",
    "TABLE t",
    "EXPLAIN SELECT 1",
    "SET search_path = x",
    "BEGIN",
    "START TRANSACTION",
    "SAVEPOINT a",
    "ROLLBACK TO SAVEPOINT a",
    "RELEASE a",
    "COPY t TO STDOUT",
    "FETCH 1 FROM c",
    "",
    "(SELECT 1) UNION (SELECT 2)",
    "SELECT a FROM t WHERE (b = 1 AND (c = 2))",
    "SELECT 1;",
    "PREPARE x AS SELECT 1",
  };
  private static final String[] WRITES = {
    "INSERT INTO t VALUES (?)",
    "update t set a = 1",
    "DELETE FROM t",
    "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE",
    "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
    "INSERT INTO t VALUES (1);",
    "/* x */ insert into t values (1)",
  };
  private static final String[] MAYBES = {
    "SELECT f(1)",
    "SELECT \"F\"(1)",
    "SELECT s.f(1)",
    "SELECT nextval('s')",
    "SELECT 1 INTO t",
    "CREATE TABLE t (a int)",
    "TRUNCATE t",
    "CALL p()",
    "{call p(?)}",
    "{?= call f(?)}",
    "DO $$ BEGIN END $$",
    "EXECUTE x",
    "COPY t FROM STDIN",
    "SELECT 1; SELECT 2",
    "INSERT INTO t VALUES (1); COMMIT",
    "EXPLAIN ANALYZE SELECT 1",
    "COMMIT AND CHAIN",
    "COPY (INSERT INTO t VALUES (1) RETURNING a) TO STDOUT",
    "nonsense",
    "INSERT INTO t VALUES ('a;b')",
  };

  static Stream<Arguments> texts() {
    Stream<Arguments> ends = Stream.of(
        Arguments.of("COMMIT", Kind.COMMIT),
        Arguments.of("end", Kind.COMMIT),
        Arguments.of("ROLLBACK", Kind.ROLLBACK),
        Arguments.of(" abort ;", Kind.ROLLBACK),
        Arguments.of("PREPARE TRANSACTION 'x'", Kind.PREPARE),
        Arguments.of("COMMIT PREPARED 'x'", Kind.END_PREPARED),
        Arguments.of("ROLLBACK PREPARED 'x'", Kind.END_PREPARED));
    return Stream.of(of(READS, Kind.READ), of(WRITES, Kind.WRITE), of(MAYBES, Kind.MAYBE), ends)
        .flatMap(each -> each);
  }

  private static Stream<Arguments> of(String[] texts, Kind kind) {
    return Stream.of(texts).map(text -> Arguments.of(text, kind));
  }

  @ParameterizedTest
  @MethodSource("texts")
  void whatAStatementMayDo(String text, Kind kind) {
    assertThat(Statements.classify(text)).isEqualTo(kind);
    if (kind != Kind.MAYBE) {
      assertThat(Statements.classify(text.toUpperCase(Locale.ROOT))).isEqualTo(kind);
    }
  }
}
