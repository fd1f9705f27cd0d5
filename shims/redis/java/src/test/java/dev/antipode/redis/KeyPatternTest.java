package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Patterns of keys are those of {@code KEYS}: the server itself is asked (SHIM-37). */
class KeyPatternTest extends WithServers {
  private record Case(String pattern, List<String> yes, List<String> no) {}

  private static final List<Case> CASES = List.of(
      new Case("post:*", List.of("post:", "post:1", "post:\n1"), List.of("post", "xpost:1")),
      new Case("p?st", List.of("post", "p.st"), List.of("pst", "poost")),
      new Case("h[ae]llo", List.of("hello", "hallo"), List.of("hillo")),
      new Case("h[^e]llo", List.of("hallo"), List.of("hello")),
      new Case("h[a-c]llo", List.of("hbllo"), List.of("hdllo")),
      new Case("h[c-a]llo", List.of("hbllo"), List.of("hdllo")),
      new Case("a\\*b", List.of("a*b"), List.of("axb")),
      new Case("[\\]x]", List.of("]", "x"), List.of("\\")),
      new Case("a.b+(c)", List.of("a.b+(c)"), List.of("axb+(c)")),
      new Case("*", List.of("", "é"), List.of()));

  @Test
  void asKeysTakesThem_SHIM_37() {
    for (Case each : CASES) {
      List<String> all = new ArrayList<>(each.yes());
      all.addAll(each.no());
      all.forEach(key -> plain.set(key, "v"));
      var matches = KeyPattern.of(each.pattern().getBytes(StandardCharsets.UTF_8));
      var found = plain.keys(each.pattern());
      for (String key : all) {
        boolean wanted = each.yes().contains(key);
        assertThat(matches.test(key.getBytes(StandardCharsets.UTF_8))).as(each.pattern() + " " + key).isEqualTo(wanted);
        assertThat(found.contains(key)).as("KEYS " + each.pattern() + " " + key).isEqualTo(wanted);
      }
    }
  }
}
