package dev.antipode;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.base.StoreSettings;
import dev.antipode.shim.Setting;
import dev.antipode.testing.AntipodeIsolated;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.AbstractMap;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Settings: code, environment and defaults (CONF-1 to CONF-12). */
@ExtendWith(AntipodeIsolated.class)
class SettingsTest {
  private final Map<String, String> variables = new HashMap<>();

  @BeforeEach
  void ownEnvironment() {
    ProcessSettings.environment(variables);
  }

  @AfterEach
  void givenEnvironment() {
    ProcessSettings.environment(null);
  }

  private void set(String name, String value) {
    variables.put(name, value);
    ProcessSettings.environment(variables);
  }

  /** CONF-9: the table of the specification is what is there, no more and no less. */
  @Test
  void theVariablesAreThoseOfTheSpecification() throws IOException {
    String page = Files.readString(Path.of(System.getProperty("antipode.spec"), "configuration.md"));
    Set<String> wanted = new HashSet<>();
    Matcher match = Pattern.compile("(?m)^\\| `(ANTIPODE_[A-Z_]+)` \\|").matcher(page);
    while (match.find()) {
      wanted.add(match.group(1));
    }
    Set<String> found = new HashSet<>();
    Arrays.stream(Setting.values()).map(Setting::variable).filter(name -> !name.isEmpty()).forEach(found::add);
    assertThat(found).isEqualTo(wanted);
  }

  /** Every setting has a getter, and a wither that checks. */
  @Test
  void everySettingHasItsWord() {
    Set<String> words = new HashSet<>();
    for (Method method : Settings.class.getMethods()) {
      words.add(method.getName().replaceAll("([A-Z])", "_$1").toUpperCase() + "/" + method.getParameterCount());
    }
    for (Setting setting : Setting.values()) {
      assertThat(words).contains(setting.name() + "/0", setting.name() + "/1");
    }
  }

  /** CONF-2. */
  @Test
  void configureTakesEffectAtOnceAndKeepsWhatItWasNotTold() {
    Settings before = Antipode.settings();
    assertThat(before.timeout()).isEqualTo(Duration.ofSeconds(1));
    int generation = ProcessSettings.generation();
    assertThat(Antipode.configure(Settings.defaults().region("b")).region()).isEqualTo("b");
    Antipode.configure(Settings.defaults().timeout(Duration.ofMillis(250)));
    assertThat(Antipode.settings().region()).isEqualTo("b");
    assertThat(Antipode.settings().timeout()).isEqualTo(Duration.ofMillis(250));
    assertThat(before.region()).isEmpty();
    assertThat(ProcessSettings.generation()).isGreaterThan(generation);
    Antipode.configure(Settings.defaults().unset(Setting.REGION));
    assertThat(Antipode.settings().region()).isEmpty();
  }

  /** CONF-2, CONF-3: what cannot be is refused at once, and changes nothing. */
  @Test
  void aMistakeInCodeChangesNothing() {
    Antipode.configure(Settings.defaults().region("b"));
    assertThatThrownBy(() -> Settings.defaults().budgetBytes(5))
        .isInstanceOf(ConfigurationException.class).hasMessageContaining("budget_bytes=5").hasMessageContaining("16 to 4087");
    assertThatThrownBy(() -> Settings.defaults().timeout(Duration.ofMillis(-1))).hasMessageContaining("at least 0");
    assertThatThrownBy(() -> Settings.defaults().onTimeout(Policy.AS_TIMEOUT)).hasMessageContaining("raise, proceed");
    assertThatThrownBy(() -> Settings.defaults().onTimeout(Policy.REDELIVER)).hasMessageContaining("raise, proceed");
    assertThatThrownBy(() -> Settings.defaults().onUnproven(Policy.REDELIVER)).hasMessageContaining("raise, proceed");
    assertThatThrownBy(() -> Settings.defaults().sample(Double.NaN)).hasMessageContaining("from 0 to 1");
    assertThatThrownBy(() -> Settings.defaults().stores("")).hasMessageContaining("names");
    assertThatThrownBy(() -> Settings.defaults().poll(Duration.ZERO)).hasMessageContaining("at least 0.0001 s");
    assertThatThrownBy(() -> Antipode.configure(Settings.defaults().region("c").trust(Trust.KEY)))
        .isInstanceOf(ConfigurationException.class).hasMessageContaining("ANTIPODE_KEYS_FILE");
    assertThat(Antipode.settings().region()).isEqualTo("b");
    assertThat(Antipode.settings().trust()).isEqualTo(Trust.PRIVATE);
  }

  /** CONF-3: named at the first look. */
  @ParameterizedTest
  @CsvSource({
    "ANTIPODE_TIMEOUT_MS, 1e4000, number", "ANTIPODE_MAX_WAITERS, 1_000, whole number",
    "ANTIPODE_MAX_TASKS, 99999999999999999999, whole number", "ANTIPODE_SAMPLE, 0x1p-1, number",
    "ANTIPODE_SEAL_TTL_S, 0, at least 1", "ANTIPODE_EDGE, ja, true or false", "ANTIPODE_MODE, strict, dry-run",
    "ANTIPODE_ON_TIMEOUT, redeliver, proceed", "ANTIPODE_ON_UNPROVEN, redeliver, as_timeout",
    "ANTIPODE_STORE_A_TIMEOUT_MS, x, number", "ANTIPODE_STORE_A_MODE, x, enforce"
  })
  void aVariableThatCannotBeReadIsNamed(String name, String value, String wanted) {
    set(name, value);
    assertThatThrownBy(Antipode::settings)
        .isInstanceOf(ConfigurationException.class).hasMessageContaining(name).hasMessageContaining(wanted);
  }

  /** CONF-1, CONF-8. */
  @Test
  void everySettingSaysWhereItCameFrom() {
    set("ANTIPODE_REGION", "b");
    Antipode.configure(Settings.defaults().sample(0.5).keys(Keys.of(Map.of("one", "0123456789abcdef".getBytes()))));
    Map<Setting, ProcessSettings.Origin> origins = new HashMap<>();
    ProcessSettings.origins().forEach(origin -> origins.put(origin.setting(), origin));
    assertThat(origins.get(Setting.REGION).origin()).isEqualTo("environment (ANTIPODE_REGION)");
    assertThat(origins.get(Setting.SAMPLE).origin()).isEqualTo("configure");
    assertThat(origins.get(Setting.EDGE).origin()).isEqualTo("default");
    assertThat(origins.get(Setting.TRUST)).isEqualTo(
        new ProcessSettings.Origin(Setting.TRUST, Trust.KEY, "keys are set"));
    assertThat(origins.get(Setting.KEYS).value()).hasToString("Keys[one]");
    assertThat(origins.toString()).doesNotContain("0123456789abcdef");
  }

  /** CONF-4. */
  @Test
  void anUnknownVariableWarnsWithTheNearest() {
    try (Observed observed = new Observed()) {
      set("ANTIPODE_TIMEOUT", "5");
      set("ANTIPODE_QQQQQQQQQQQQQQQQQQQQQQQQQQQ", "5");
      set("ANTIPODE_LAB", "lab.json");
      set("ANTIPODE_BENCHMARK_RUNS", "3");
      Antipode.settings();
      assertThat(observed.lines()).hasSize(2);
      assertThat(observed.linesWith("ANTIPODE_TIMEOUT ")).first().asString()
          .endsWith("Did you mean ANTIPODE_TIMEOUT_MS? [AP302]");
    }
  }

  /** CONF-1, CONF-5, CONF-10. */
  @Test
  void theSettingsOfAStoreComeByItsName() {
    set("ANTIPODE_STORE_BLOG_POSTS_REPLICAS", "redis://b1, redis://b2");
    set("ANTIPODE_STORE_BLOG_POSTS_PRIMARY", "redis://a");
    set("ANTIPODE_STORE_BLOG_POSTS_TIMEOUT_MS", "200");
    set("ANTIPODE_STORE_BLOG_POSTS_MODE", "dry-run");
    set("ANTIPODE_STORE_EMPTY_MODE", " ");
    StoreSettings found = ProcessSettings.ofStore("blog-posts");
    assertThat(found.replicas()).contains(List.of("redis://b1", "redis://b2"));
    assertThat(found.primary()).contains("redis://a");
    assertThat(ProcessSettings.ofStore("other")).isEqualTo(StoreSettings.NONE);
    assertThat(ProcessSettings.timeoutOf("blog-posts", null)).isEqualTo(Duration.ofMillis(200));
    assertThat(ProcessSettings.timeoutOf("blog-posts", Duration.ofSeconds(3))).isEqualTo(Duration.ofSeconds(3));
    assertThat(ProcessSettings.timeoutOf("other", null)).isEqualTo(Duration.ofSeconds(1));
    assertThat(ProcessSettings.modeOf("blog-posts", Mode.ENFORCE)).isEqualTo(Mode.DRY_RUN);
    assertThat(ProcessSettings.modeOf("blog-posts", Mode.OFF)).isEqualTo(Mode.OFF);
    assertThat(ProcessSettings.modeOf("other", null)).isEqualTo(Mode.ENFORCE);
    Antipode.configure(Settings.defaults().timeout(Duration.ofSeconds(2)).mode(Mode.OFF));
    assertThat(ProcessSettings.timeoutOf("blog-posts", null)).isEqualTo(Duration.ofSeconds(2));
    assertThat(ProcessSettings.modeOf("other", Mode.ENFORCE)).isEqualTo(Mode.OFF);
  }

  /** CONF-11, TRUST-2, TRUST-22. */
  @Test
  void aKeysFileMeansKey(@TempDir Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve("keys"), "# ours\n\none MDEyMzQ1Njc4OWFiY2RlZg==\n");
    set("ANTIPODE_KEYS_FILE", file.toString());
    assertThat(Antipode.settings().trust()).isEqualTo(Trust.KEY);
    assertThat(Antipode.settings().keys().ids()).containsExactly("one");
    set("ANTIPODE_TRUST", "private");
    assertThat(Antipode.settings().trust()).isEqualTo(Trust.PRIVATE);
    Files.writeString(file, "one c2hvcnQ=\n");
    ProcessSettings.reset();
    assertThatThrownBy(Antipode::settings).isInstanceOf(ConfigurationException.class)
        .hasMessageContaining(file.toString()).hasMessageContaining("at least 16");
    Files.delete(file);
    ProcessSettings.reset();
    assertThatThrownBy(Antipode::settings).isInstanceOf(ConfigurationException.class).hasMessageContaining("cannot be read");
  }

  /** CONF-12: an environment that must not be looked at any more. */
  @Test
  void settingsThatWereReadAreNotLookedForAgain() {
    boolean[] mayLook = {true};
    ProcessSettings.environment(new AbstractMap<>() {
      @Override
      public Set<Map.Entry<String, String>> entrySet() {
        if (!mayLook[0]) {
          throw new AssertionError("looked at the environment");
        }
        return Map.of("ANTIPODE_TIMEOUT_MS", "700", "ANTIPODE_STORE_POSTS_TIMEOUT_MS", "900").entrySet();
      }
    });
    Settings first = ProcessSettings.inForce();
    mayLook[0] = false;
    assertThat(ProcessSettings.inForce()).isSameAs(first);
    assertThat(Antipode.settings().timeout()).isEqualTo(Duration.ofMillis(700));
    assertThat(ProcessSettings.timeoutOf("posts", null)).isEqualTo(Duration.ofMillis(900));
    assertThat(ProcessSettings.modeOf("posts", null)).isEqualTo(Mode.ENFORCE);
    try (LineageScope scope = Antipode.scope()) { // a request's path
      assertThat(scope.outgoing().isComplete()).isTrue();
    }
  }
}
