package dev.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.antipode.Antipode;
import dev.antipode.ConfigurationException;
import dev.antipode.Mode;
import dev.antipode.OnPending;
import dev.antipode.Policy;
import dev.antipode.Settings;
import dev.antipode.Store;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.shim.Setting;
import dev.antipode.testing.AntipodeIsolated;
import dev.antipode.testing.CapturedLogs;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.convert.DurationStyle;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.core.env.SystemEnvironmentPropertySource;

/** The properties are settings in code (CONF-1 to CONF-5). */
@ExtendWith(AntipodeIsolated.class)
class PropertiesTest {
  private final ApplicationContextRunner runner =
      new ApplicationContextRunner().withConfiguration(AutoConfigurations.of(AntipodeAutoConfiguration.class));

  @AfterEach
  void theEnvironmentIsTheProcesss() {
    ProcessSettings.environment(null);
  }

  @Test
  void everySettingIsAProperty() {
    runner.withPropertyValues(
            "antipode.mode=dry_run",
            "antipode.region=b",
            "antipode.timeout=500ms",
            "antipode.on-timeout=proceed",
            "antipode.on-unproven=as-timeout",
            "antipode.onPending=WARN",
            "antipode.peers=api.example.com, 10.1.0.0/16",
            "antipode.seal-ttl=60",
            "antipode.budget-bytes=2000",
            "antipode.edge=yes",
            "antipode.sample=0.5",
            "antipode.hash-keys=",
            "antipode.poll=PT0.02S")
        .run(context -> {
          assertThat(context).hasNotFailed();
          Settings now = Antipode.settings();
          assertThat(now.mode()).isEqualTo(Mode.DRY_RUN);
          assertThat(now.region()).isEqualTo("b");
          assertThat(now.timeout()).isEqualTo(Duration.ofMillis(500));
          assertThat(now.onTimeout()).isEqualTo(Policy.PROCEED);
          assertThat(now.onUnproven()).isEqualTo(Policy.AS_TIMEOUT);
          assertThat(now.onPending()).isEqualTo(OnPending.WARN);
          assertThat(now.peers()).containsExactly("api.example.com", "10.1.0.0/16");
          assertThat(now.sealTtl()).isEqualTo(Duration.ofSeconds(60));
          assertThat(now.budgetBytes()).isEqualTo(2000);
          assertThat(now.edge()).isTrue();
          assertThat(now.sample()).isEqualTo(0.5);
          assertThat(now.hashKeys()).isFalse();
          assertThat(now.poll()).isEqualTo(Duration.ofMillis(20));
        });
  }

  @Test
  void aListMayBeYamls() {
    runner.withPropertyValues("antipode.peers[0]=api.example.com", "antipode.peers[1]=.example.org")
        .run(context -> assertThat(Antipode.settings().peers()).containsExactly("api.example.com", ".example.org"));
  }

  /** CONF-1, CONF-5: properties go over variables, but for the more careful of mode and edge. */
  @Test
  void propertiesAndVariables() {
    ProcessSettings.environment(Map.of(
        "ANTIPODE_REGION", "of the variable",
        "ANTIPODE_TIMEOUT_MS", "7",
        "ANTIPODE_MODE", "off",
        "ANTIPODE_EDGE", "true"));
    runner.withPropertyValues("antipode.region=of the property", "antipode.mode=enforce", "antipode.edge=false")
        .run(context -> {
          Settings now = Antipode.settings();
          assertThat(now.region()).isEqualTo("of the property");
          assertThat(now.timeout()).isEqualTo(Duration.ofMillis(7));
          assertThat(now.mode()).isEqualTo(Mode.OFF);
          assertThat(now.edge()).isTrue();
        });
  }

  /** CONF-1: Spring reads variables as properties, and would let them go over all; a list is no map either. */
  @Test
  void variablesAreNotReadTwice() {
    Map<String, Object> variables = Map.of("ANTIPODE_REGION", "of the variable", "ANTIPODE_STORES", "blog-posts");
    ProcessSettings.environment(Map.of("ANTIPODE_REGION", "of the variable", "ANTIPODE_STORES", "blog-posts"));
    runner.withInitializer(context -> context.getEnvironment().getPropertySources()
            .addFirst(new SystemEnvironmentPropertySource("variables", variables)))
        .withPropertyValues("antipode.region=of the property", "antipode.stores.user-acl.replicas=redis://127.0.0.1:1")
        .run(context -> {
          assertThat(context).hasNotFailed();
          assertThat(Antipode.settings().region()).isEqualTo("of the property");
          assertThat(Antipode.settings().stores()).containsExactly("blog-posts", "user-acl");
          assertThat(Antipode.stores()).extracting(Store::name).containsExactly("user-acl");
        });
  }

  /** CONF-3: the message names the property and what is wanted. */
  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
    "antipode.timeout=soon            | antipode.timeout='soon': want a duration",
    "antipode.timeout=-1s             | want at least 0 s",
    "antipode.mode=maybe              | antipode.mode='maybe': want one of enforce, dry-run, off",
    "antipode.budget-bytes=7          | antipode.budget-bytes='7': want a number from 16 to 4087",
    "antipode.peers=1.2.3.4/99        | 1.2.3.4/99",
    "antipode.stores.a.bena=x         | antipode.stores.a.bena",
    "antipode.stores.a.rest=somewhere | antipode.stores.a.rest='somewhere': want field, envelope, native or none",
    "antipode.stores.a.bean=antipodeSettings | made before it could be wrapped",
    "antipode.stores.a.bean=antipodeTelemetry | with what is on the class path want",
    "antipode.stores.a.bean=antipodeSettigns | Did you mean \"antipodeSettings\"?",
  })
  void whatCannotBeFailsTheStart(String property, String message) {
    runner.withPropertyValues(property).run(context -> {
      assertThat(context).hasFailed();
      StringBuilder all = new StringBuilder();
      for (Throwable each = context.getStartupFailure(); each != null; each = each.getCause()) {
        all.append(each.getMessage()).append('\n');
      }
      assertThat(all.toString()).contains(message.strip());
    });
  }

  /** CONF-4. */
  @Test
  void anUnknownPropertyIsWarnedAbout() {
    try (CapturedLogs logs = new CapturedLogs()) {
      runner.withPropertyValues("antipode.timout=1s", "antipode.max_waiters=5", "antipode.enabled=true")
          .run(context -> assertThat(context).hasNotFailed());
      assertThat(logs.lines())
          .filteredOn(line -> line.contains("the property ") && !line.contains("antipode.spec")) // this build's own
          .singleElement().asString().contains("antipode.timout").contains("Did you mean antipode.timeout?");
      assertThat(Antipode.settings().maxWaiters()).isEqualTo(5);
    }
  }

  /** The metadata for editors has every setting, with its default. */
  @Test
  void metadata() throws IOException {
    Map<String, JsonNode> described = new HashMap<>();
    try (InputStream file = SpringSettings.class.getResourceAsStream("/META-INF/spring-configuration-metadata.json")) {
      StreamSupport.stream(new ObjectMapper().readTree(file).get("properties").spliterator(), false)
          .forEach(property -> described.put(property.get("name").asText(), property));
    }
    assertThat(described.remove("antipode.enabled").get("defaultValue").asBoolean()).isTrue();
    assertThat(described).containsKey("antipode.stores");
    for (Setting setting : Setting.values()) {
      if (setting != Setting.KEYS && setting != Setting.STORES) {
        JsonNode property = described.remove(SpringSettings.propertyOf(setting));
        assertThat(property).as(setting.word()).isNotNull();
        assertThat(property.get("description").asText()).isNotEmpty();
        JsonNode initial = property.get("defaultValue");
        if (setting.initial() instanceof Duration duration) {
          assertThat(DurationStyle.detectAndParse(initial.asText())).isEqualTo(duration);
        } else if (initial != null) {
          assertThat(initial.asText().replace('-', '_')).isEqualTo(setting.initial().toString().replace('-', '_'));
        } else {
          assertThat(setting.initial().toString()).isIn("", "[]");
        }
      }
    }
    assertThat(described.keySet()).containsExactly("antipode.stores");
  }

  /** CONF-3: a wrong value changes nothing. */
  @Test
  void aFailedStartChangesNothing() {
    Antipode.configure(Settings.defaults().region("before"));
    runner.withPropertyValues("antipode.region=after", "antipode.timeout=soon").run(context -> {
      assertThat(context.getStartupFailure()).hasRootCauseInstanceOf(ConfigurationException.class);
      assertThat(Antipode.settings().region()).isEqualTo("before");
    });
  }
}
