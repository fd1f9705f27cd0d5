package dev.antipode.internal.base;

import dev.antipode.ConfigurationException;
import dev.antipode.Keys;
import dev.antipode.Mode;
import dev.antipode.Settings;
import dev.antipode.Trust;
import dev.antipode.internal.base.ProcessSettings.ResolvedSettings;
import dev.antipode.shim.Logs;
import dev.antipode.shim.Setting;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Makes one value of what code has said and what the environment says. */
final class Resolver {
  private static final String DEFAULT = "default";
  private static final String IN_CODE = "configure";
  private static final Pattern STORE_VARIABLE =
      Pattern.compile(Kind.PREFIX + "STORE_(.+)_(REPLICAS|PRIMARY|TIMEOUT_MS|MODE)");
  private static final List<String> TOOLS =
      List.of(Kind.PREFIX + "LAB", Kind.PREFIX + "BENCHMARK", Kind.PREFIX + "TEST");

  private Resolver() {}

  static ResolvedSettings resolve(Settings code, Map<String, String> environment) {
    Map<String, String> variables = new TreeMap<>();
    environment.forEach((name, text) -> {
      if (name.startsWith(Kind.PREFIX)) {
        variables.put(name, text.strip());
      }
    });
    Settings settings = Settings.defaults();
    Map<Setting, String> origins = new EnumMap<>(Setting.class);
    for (Setting setting : Setting.values()) {
      origins.put(setting, DEFAULT);
      String text = setting.variable().isEmpty() ? null : variables.remove(setting.variable());
      Object said = code.said(setting);
      Object read = text == null || text.isEmpty() ? null : setting.read(text, setting.variable());
      if (read != null) {
        settings = settings.with(setting, read);
        origins.put(setting, "environment (" + setting.variable() + ")");
      }
      if (said != null && !isMoreCareful(setting, read, said)) {
        settings = settings.with(setting, said);
        origins.put(setting, IN_CODE);
      }
    }
    Map<String, StoreSettings> stores = readStores(variables);
    return new ResolvedSettings(withKeys(settings, origins), code, origins, stores, unknown(variables));
  }

  /** Of environment and code, the more careful wins for these two (CONF-5). */
  private static boolean isMoreCareful(Setting setting, Object environment, Object code) {
    if (setting == Setting.MODE && environment != null) {
      return ((Mode) environment).compareTo((Mode) code) > 0;
    }
    return setting == Setting.EDGE && Boolean.TRUE.equals(environment);
  }

  /** Reads the keys file, and lets keys alone mean {@code key} (CONF-11). */
  private static Settings withKeys(Settings given, Map<Setting, String> origins) {
    Settings settings = given;
    if (settings.keys().isEmpty() && !settings.keysFile().isEmpty()) {
      String where = Setting.KEYS_FILE.variable() + "=" + settings.keysFile();
      try {
        Path file = Path.of(settings.keysFile());
        String text = Files.readString(file, StandardCharsets.UTF_8);
        if (Files.getFileStore(file).supportsFileAttributeView("posix")
            && Files.getPosixFilePermissions(file).contains(PosixFilePermission.OTHERS_READ)) {
          Logs.warn("AP307", "keys file", where + " may be read by every user of this machine: chmod o-r it.");
        }
        settings = settings.keys(Keys.parse(text, where));
      } catch (IOException | InvalidPathException e) {
        throw new ConfigurationException("AP304", where + " cannot be read: " + e);
      }
      origins.put(Setting.KEYS, origins.get(Setting.KEYS_FILE));
    }
    if (!settings.keys().isEmpty() && origins.get(Setting.TRUST).equals(DEFAULT)) {
      settings = settings.trust(Trust.KEY);
      origins.put(Setting.TRUST, "keys are set");
    }
    if (settings.trust() == Trust.KEY && settings.keys().isEmpty()) {
      throw new ConfigurationException(
          "AP303", "trust=key needs keys: set ANTIPODE_KEYS_FILE, or configure them in code (Settings.keys)");
    }
    return settings;
  }

  /** Takes the variables of single stores out and reads them. */
  private static Map<String, StoreSettings> readStores(Map<String, String> variables) {
    Map<String, StoreSettings> stores = new HashMap<>();
    for (Map.Entry<String, String> variable : List.copyOf(variables.entrySet())) {
      Matcher match = STORE_VARIABLE.matcher(variable.getKey());
      if (match.matches()) {
        variables.remove(variable.getKey());
        if (!variable.getValue().isEmpty()) {
          String store = match.group(1);
          StoreSettings now = stores.getOrDefault(store, StoreSettings.NONE);
          stores.put(store, with(now, match.group(2), variable.getValue(), variable.getKey()));
        }
      }
    }
    return stores;
  }

  @SuppressWarnings("unchecked") // the setting of a list reads a list of text
  private static StoreSettings with(StoreSettings now, String word, String text, String variable) {
    return switch (word) {
      case "REPLICAS" -> new StoreSettings(
          Optional.of((List<String>) Setting.STORES.read(text, variable)), now.primary(), now.timeout(), now.mode());
      case "PRIMARY" -> new StoreSettings(now.replicas(), Optional.of(text), now.timeout(), now.mode());
      case "TIMEOUT_MS" -> new StoreSettings(
          now.replicas(), now.primary(), Optional.of((Duration) Setting.TIMEOUT.read(text, variable)), now.mode());
      default -> new StoreSettings(
          now.replicas(), now.primary(), now.timeout(), Optional.of((Mode) Setting.MODE.read(text, variable)));
    };
  }

  private static Map<String, String> unknown(Map<String, String> variables) {
    Map<String, String> unknown = new TreeMap<>();
    for (String name : variables.keySet()) {
      if (TOOLS.stream().noneMatch(name::startsWith)) {
        unknown.put(name, nearest(name));
      }
    }
    return unknown;
  }

  private static String nearest(String name) {
    return Arrays.stream(Setting.values())
        .map(Setting::variable)
        .filter(known -> !known.isEmpty())
        .min(Comparator.comparingInt(known -> NearestName.distance(name, known)))
        .filter(known -> NearestName.distance(name, known) <= (name.length() - Kind.PREFIX.length()) / 2 + 1)
        .map(known -> " Did you mean " + known + "?")
        .orElse("");
  }

  static String variableName(String store) {
    return store.replaceAll("[^A-Za-z0-9]", "_").toUpperCase(Locale.ROOT);
  }
}
