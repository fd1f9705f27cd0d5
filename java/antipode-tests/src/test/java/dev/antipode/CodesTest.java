package dev.antipode;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.antipode.shim.Logs;
import dev.antipode.testing.CapturedLogs;
import dev.antipode.testing.Isolated;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Every message that a user can meet has a code of spec/data/messages.json (OBS-14, OBS-15). */
class CodesTest {
  private static final Path SPEC = Path.of(System.getProperty("antipode.spec"));
  private static final Pattern LITERAL = Pattern.compile("\"(AP\\d+)\"");
  private static final Pattern TAKES_CODE = Pattern.compile("public (\\w+Exception)\\(String code\\b");
  private static final Pattern CODE = Pattern.compile("\"AP\\d{3}\"");

  /** A code that was chosen elsewhere, where it is a literal. */
  private static final Pattern CHOSEN = Pattern.compile("code|error\\.code\\(\\)");

  /** The line of what is in force describes no trouble: there is nothing to explain. */
  private static final String WITHOUT = "Announcement.java";

  private static Map<Path, String> sources() throws IOException {
    Path root = SPEC.resolve("..").normalize();
    List<Path> folders = new ArrayList<>();
    try (Stream<Path> modules = Files.list(root.resolve("java")); Stream<Path> shims = Files.list(root.resolve("shims"))) {
      modules.forEach(module -> folders.add(module.resolve("src/main/java")));
      shims.forEach(shim -> folders.add(shim.resolve("java/src/main/java")));
    }
    return folders.stream().filter(Files::isDirectory).flatMap(CodesTest::walk)
        .filter(file -> file.toString().endsWith(".java"))
        .collect(Collectors.toMap(file -> file, CodesTest::text));
  }

  private static Stream<Path> walk(Path folder) {
    try {
      return Files.walk(folder);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static String text(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static Set<String> known() throws IOException {
    Set<String> known = new TreeSet<>();
    new ObjectMapper().readTree(SPEC.resolve("data/messages.json").toFile()).get("codes")
        .forEach(each -> known.add(each.get("code").asText()));
    return known;
  }

  @Test
  void everySiteHasItsCode() throws IOException {
    Map<Path, String> sources = sources();
    Set<String> takers = new TreeSet<>();
    sources.values().forEach(text -> TAKES_CODE.matcher(text).results().forEach(found -> takers.add(found.group(1))));
    assertThat(takers).contains("ConfigurationException", "BarrierTimeoutException");
    Pattern site = Pattern.compile(
        "(?:new (?:" + String.join("|", takers) + ")|Logs\\.(?:warn|info|error)|binding(?:\\(\\))?\\.say)\\(\\s*([^,]*),");
    Set<String> without = new TreeSet<>();
    int[] sites = {0};
    sources.forEach((file, text) -> {
      for (Matcher found = site.matcher(text); found.find(); sites[0]++) {
        String first = found.group(1);
        boolean isCoded = CODE.matcher(first).matches() || CHOSEN.matcher(first).matches();
        if (!isCoded && !(first.equals("\"\"") && file.endsWith(WITHOUT))) {
          without.add(file.getFileName() + ": " + found.group());
        }
      }
    });
    assertThat(sites[0]).isGreaterThan(100);
    assertThat(without).isEmpty();
  }

  @Test
  void everyCodeIsInTheList() throws IOException {
    Set<String> known = known();
    Set<String> unknown = new TreeSet<>();
    sources().forEach((file, text) -> LITERAL.matcher(text).results()
        .filter(found -> !known.contains(found.group(1)))
        .forEach(found -> unknown.add(file.getFileName() + ": " + found.group(1))));
    assertThat(unknown).isEmpty();
  }

  @Test
  void theCodeStandsBehindTheFirstLine() {
    ConfigurationException error = new ConfigurationException("AP111", "wrong\n  do this");
    assertThat(error.code()).isEqualTo("AP111");
    assertThat(error.words()).isEqualTo("wrong\n  do this");
    assertThat(error).hasMessage("wrong [AP111]\n  do this");
    assertThat(new UnknownStoreException("no store s")).hasMessage("no store s [AP106]");
    try (Isolated isolated = new Isolated(); CapturedLogs logs = new CapturedLogs()) {
      assertThat(isolated).isNotNull();
      Logs.warn("AP401", "a kind", "lost", "dropped");
      assertThat(logs.lines()).containsExactly("lost [AP401] dropped=1");
    }
  }

  /** OBS-15: each verdict and kind. */
  @Test
  void aStoresCodeIsThatOfItsVerdict() {
    assertThat(code(Verdict.VISIBLE, null)).isEmpty();
    assertThat(code(Verdict.VISIBLE, null, new ServerResult("a", Verdict.UNPROVEN, "", true, UnprovenKind.CONNECTION)))
        .isEqualTo("AP206");
    assertThat(code(Verdict.NOT_YET, null)).isEqualTo("AP201");
    assertThat(code(Verdict.TIMED_OUT, null)).isEqualTo("AP201");
    assertThat(code(Verdict.TIMED_OUT, null, new ServerResult("a", Verdict.TIMED_OUT, "", false, null, true)))
        .isEqualTo("AP205");
    assertThat(code(Verdict.ELSEWHERE, null)).isEqualTo("AP103");
    assertThat(Stream.of(UnprovenKind.values()).map(kind -> code(Verdict.UNPROVEN, kind)))
        .containsExactly("AP202", "AP203", "AP204", "AP104", "AP107", "AP207", "AP208", "AP209", "AP299");
    BarrierResult result = new BarrierResult.Builder(false)
        .judge(() -> Map.of("s", new StoreResult(Verdict.TIMED_OUT, "behind", Duration.ZERO, List.of(), null)))
        .build();
    assertThat(result.explain()).endsWith("\n  s: timed_out (behind) [AP201]");
  }

  /** OBS-14: what a result says beside its verdicts. */
  @Test
  void gapsAndAnEmptyResultHaveCodes() {
    BarrierResult result = new BarrierResult.Builder(true)
        .gaps(List.of(new Gap("malformed", "s", "no lineage"), new Gap("backlog", "s", ""))).build();
    assertThat(result.explain().lines()).containsExactly(
        "satisfied in 0 ms: nothing to wait for [AP102]",
        "  incomplete: malformed s no lineage [AP405]",
        "  incomplete: backlog s [AP517]");
  }

  private static String code(Verdict verdict, UnprovenKind kind, ServerResult... servers) {
    return new StoreResult(verdict, "", Duration.ZERO, List.of(servers), kind).code();
  }
}
