package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;

/** The small reader of our own connections. */
class RespTest {
  private static Object read(String text) throws IOException {
    return new Resp(new ByteArrayInputStream(text.getBytes(StandardCharsets.ISO_8859_1))).read();
  }

  @Property(tries = 200)
  void whatIsPackedIsRead(@ForAll @Size(min = 1, max = 8) List<byte[]> words) throws IOException {
    byte[] packed = Resp.pack(words.toArray());
    Object found = new Resp(new ByteArrayInputStream(packed)).read();
    assertThat((List<?>) found).hasSameSizeAs(words);
    for (int place = 0; place < words.size(); place++) {
      assertThat((byte[]) ((List<?>) found).get(place)).isEqualTo(words.get(place));
    }
  }

  @Test
  void readsEveryKindOfMessage() throws IOException {
    assertThat(read(":42\r\n")).isEqualTo(42L);
    assertThat(read("_\r\n")).isNull();
    assertThat(read("$-1\r\n")).isNull();
    assertThat(read("#t\r\n")).isEqualTo(true);
    assertThat(Resp.text(read("=7\r\ntxt:abc\r\n"))).isEqualTo("abc");
    assertThat(((ServerError) read("-NOPERM no\r\n")).code()).isEqualTo("NOPERM");
    assertThat(((Map<?, ?>) read("%1\r\n+mode\r\n+cluster\r\n")).keySet().toString()).isEqualTo("[mode]");
    assertThat(((Resp.Push) read(">2\r\n$10\r\ninvalidate\r\n_\r\n")).words().get(1)).isNull();
    assertThat(read("|1\r\n+a\r\n+b\r\n:1\r\n")).isEqualTo(1L);
  }

  @Test
  void refusesWhatIsNoResp() {
    assertThatThrownBy(() -> read("HTTP/1.1 400\r\n")).isInstanceOf(IOException.class);
    assertThatThrownBy(() -> read("$5\r\nab")).isInstanceOf(IOException.class);
    assertThatThrownBy(() -> read(":x\r\n")).isInstanceOf(IOException.class);
  }
}
