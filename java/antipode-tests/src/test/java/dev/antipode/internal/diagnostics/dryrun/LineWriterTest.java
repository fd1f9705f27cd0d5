package dev.antipode.internal.diagnostics.dryrun;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/** The thread that writes lines. */
class LineWriterTest {
  private final List<Map<String, Object>> written = new CopyOnWriteArrayList<>();
  private volatile boolean fails = true;

  private final LineWriter writer = new LineWriter() {
    @Override
    protected void append(List<Map<String, Object>> lines) {
      if (fails) {
        throw new OutOfMemoryError("no memory to write");
      }
      written.addAll(lines);
    }

    @Override
    protected long patience() {
      if (fails) {
        throw new OutOfMemoryError("no memory to ask what is due");
      }
      return super.patience();
    }

    @Override
    protected void warn(String why) {}
  };

  /** The lines behind it are written, and whoever waits for them does not wait in vain. */
  @Test
  void anErrorOfOursEndsNoWriter_BAR_61() {
    writer.put(Map.of("line", 1));
    Lines.until(() -> writer.dropped() == 1);
    fails = false;
    writer.put(Map.of("line", 2));
    assertThat(writer.flush(60_000)).isTrue();
    assertThat(written).containsExactly(Map.of("line", 2));
  }
}
