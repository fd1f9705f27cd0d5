package dev.antipode.spring;

import dev.antipode.Antipode;
import dev.antipode.ConfigurationException;
import dev.antipode.Settings;
import dev.antipode.shim.Logs;
import dev.antipode.shim.Setting;
import dev.antipode.shim.Shims;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.springframework.boot.context.properties.bind.BindHandler;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.bind.PropertySourcesPlaceholdersResolver;
import org.springframework.boot.context.properties.bind.handler.NoUnboundElementsBindHandler;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.convert.DurationStyle;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.PropertySource;
import org.springframework.core.env.SystemEnvironmentPropertySource;

/**
 * The {@code antipode.*} properties: what {@code Antipode.configure} is in code (CONF-1). They go over the variables of the
 * environment, but for {@code mode} and {@code edge}, of which the more careful wins (CONF-5).
 *
 * <p>The words are the variables', without prefix and unit: {@code antipode.on-timeout=proceed}, {@code antipode.timeout=500ms}.
 * The environment's own variables are Antipode's, and not read as properties a second time.
 */
public final class SpringSettings {
  private static final String PREFIX = "antipode.";
  private static final String STORES = PREFIX + "stores";
  private static final String ENABLED = PREFIX + "enabled";

  private final Map<String, StoreProperties> stores;

  private SpringSettings(Map<String, StoreProperties> stores) {
    this.stores = stores;
  }

  /** What the properties say of single stores, by their names. */
  Map<String, StoreProperties> stores() {
    return stores;
  }

  /**
   * Reads the properties and configures the process.
   *
   * @throws ConfigurationException for a value that cannot be, with the name of its property
   */
  static SpringSettings putInForce(ConfigurableEnvironment environment) {
    List<PropertySource<?>> sources = environment.getPropertySources().stream()
        .filter(source -> !(source instanceof SystemEnvironmentPropertySource))
        .filter(source -> !ConfigurationPropertySources.isAttachedConfigurationPropertySource(source))
        .collect(Collectors.toList());
    Binder binder = new Binder(
        ConfigurationPropertySources.from(sources), new PropertySourcesPlaceholdersResolver(environment));
    Settings settings = Settings.defaults();
    for (Setting setting : Setting.values()) {
      String text = setting == Setting.KEYS || setting == Setting.STORES ? "" : textOf(setting, binder);
      if (!text.isEmpty()) {
        settings = settings.with(setting, valueOf(setting, text));
      }
    }
    Map<String, StoreProperties> stores = binder
        .bind(STORES, Bindable.mapOf(String.class, StoreProperties.class), new NoUnboundElementsBindHandler(BindHandler.DEFAULT))
        .orElse(Map.of());
    if (!stores.isEmpty()) {
      settings = settings.stores(withVariables(stores.keySet()));
    }
    warnOfUnknown(sources);
    Antipode.configure(settings);
    return new SpringSettings(new TreeMap<>(stores));
  }

  /** The property's name: {@code antipode.on-timeout}. */
  static String propertyOf(Setting setting) {
    return PREFIX + setting.word().replace('_', '-');
  }

  private static String textOf(Setting setting, Binder binder) {
    Bindable<List<String>> list = Bindable.listOf(String.class); // of a YAML list; plain text is split at commas
    return setting.initial() instanceof List
        ? String.join(",", binder.bind(propertyOf(setting), list).orElse(List.of())).strip()
        : binder.bind(propertyOf(setting), String.class).orElse("").strip();
  }

  private static Object valueOf(Setting setting, String text) {
    String property = propertyOf(setting);
    if (setting.initial() instanceof Duration) {
      ChronoUnit unit = setting.variable().endsWith("_S") ? ChronoUnit.SECONDS : ChronoUnit.MILLIS;
      try {
        return DurationStyle.detectAndParse(text, unit);
      } catch (IllegalArgumentException e) {
        throw new ConfigurationException("AP301", property + "='" + text + "': want a duration, such as 500ms or 2s");
      }
    }
    if (setting.initial() instanceof Enum<?> word) {
      return setting.read(wordOf(word, text), property);
    }
    return setting.read(text, property);
  }

  /** The word that is meant where dashes and underscores are exchanged, as in other properties of Spring's. */
  private static String wordOf(Enum<?> example, String text) {
    return Arrays.stream(example.getDeclaringClass().getEnumConstants())
        .map(Object::toString)
        .filter(word -> plain(word).equals(plain(text)))
        .findFirst()
        .orElse(text);
  }

  private static String plain(String word) {
    return word.replaceAll("[-_]", "").toLowerCase(Locale.ROOT);
  }

  /** The stores that are named here will be waited for; those of the variable stay so. */
  private static List<String> withVariables(Set<String> names) {
    Set<String> all = new LinkedHashSet<>(Antipode.settings().stores());
    all.addAll(names);
    return new ArrayList<>(all);
  }

  private static void warnOfUnknown(List<PropertySource<?>> sources) {
    Set<String> known = Arrays.stream(Setting.values())
        .filter(setting -> setting != Setting.KEYS)
        .map(SpringSettings::propertyOf)
        .collect(Collectors.toCollection(LinkedHashSet::new));
    known.add(ENABLED);
    Set<String> plain = known.stream().map(SpringSettings::plain).collect(Collectors.toSet());
    for (PropertySource<?> source : sources) {
      for (String name : source instanceof EnumerablePropertySource<?> listed ? listed.getPropertyNames() : new String[0]) {
        String word = name.replaceFirst("\\[.*", "");
        if (name.startsWith(PREFIX) && !name.startsWith(STORES + ".") && !name.startsWith(STORES + "[")
            && !plain.contains(plain(word))) {
          String near = Shims.nearest(word, known);
          Logs.warn(
              "AP302",
              "property " + name,
              "the property " + name + " is not known and does nothing."
                  + (near == null ? "" : " Did you mean " + near + "?"));
        }
      }
    }
  }
}
