package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.Lineage;
import dev.antipode.Ordered;
import dev.antipode.lab.Repository;
import java.sql.SQLException;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Python and Java share one store: each waits for what the other wrote (EPOCH-29, WIRE-1). */
class TogetherTest extends QuietRegion {
  private static final String WRITE = """
      import sys, antipode, antipode_postgresql, psycopg
      plain = psycopg.connect(sys.argv[1])
      posts = antipode_postgresql.wrap(plain, store=sys.argv[2])
      with antipode.scope():
          with posts.transaction():
              posts.execute("INSERT INTO posts VALUES (%s, 'python')", (sys.argv[3],))
          print(antipode.serialize())
      """;
  private static final String WAIT = """
      import sys, antipode, antipode_postgresql, psycopg
      antipode_postgresql.register(sys.argv[2], replicas=[sys.argv[1]])
      result = antipode.barrier(antipode.deserialize(sys.argv[3]), timeout=20.0)
      assert result.complete, result
      print(psycopg.connect(sys.argv[1]).execute("SELECT value FROM posts WHERE key = %s", (sys.argv[4],)).fetchone()[0])
      """;

  @Test
  void javaWaitsForWhatPythonWrote() throws SQLException {
    String key = newKey();
    Lineage written = Lineage.deserialize(Repository.runPython(WRITE, region().url("a", "app"), STORE, key));
    assertPosition(written);
    Antipode.barrier(BarrierOptions.defaults().lineage(written).timeout(Duration.ofSeconds(20)));
    assertThat(shows("b1", key)).isEqualTo("python");
    // One epoch, with one word, whoever wrote it down first.
    assertThat(epoch(write(newKey()))).isEqualTo(epoch(written));
  }

  private static String epoch(Lineage lineage) {
    return ((Ordered) lineage.ofStore(STORE).get(0).version()).epoch();
  }

  @Test
  void pythonWaitsForWhatJavaWrote() {
    String key = newKey();
    String text = write(key).serialize();
    assertThat(Repository.runPython(WAIT, region().url("b1", "app"), STORE, text, key)).isEqualTo("v");
  }
}
