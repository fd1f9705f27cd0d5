package dev.antipode.internal.base;

import dev.antipode.Mode;
import dev.antipode.Settings;
import dev.antipode.shim.Logs;
import dev.antipode.shim.Setting;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/** The settings of this process, and where each came from: what code said, and the environment (CONF-1 to CONF-12). */
public final class ProcessSettings {
  private static final Object LOCK = new Object();
  private static Supplier<Map<String, String>> environment = System::getenv;
  private static Settings code = Settings.defaults();
  private static volatile ResolvedSettings resolved; // null: not looked at yet
  private static volatile int generation;
  private static volatile int timesOffEnded;

  private ProcessSettings() {}

  /**
   * One setting in force, for tools (CONF-8).
   *
   * @param setting which one
   * @param value its value; keys show their ids only
   * @param origin where it came from: {@code default}, {@code configure}, {@code environment (ANTIPODE_MODE)}
   */
  public record Origin(Setting setting, Object value, String origin) {}

  /** The settings in force; the environment is read at the first call. Cheap enough for every request (CONF-12). */
  public static Settings inForce() {
    return now().settings();
  }

  /** A number that grows whenever the settings may have changed, for what is derived from them. */
  public static int generation() {
    return generation;
  }

  /** A number that grows whenever the mode leaves {@code off}: scopes that are open then have missed something (SCOPE-26). */
  public static int timesOffEnded() {
    return timesOffEnded;
  }

  /** What code says from now on, over what it has said before; the environment is read again. */
  public static Settings configure(Settings words) {
    synchronized (LOCK) {
      Settings said = code.overlaid(words);
      ResolvedSettings found = Resolver.resolve(said, environment.get());
      boolean leavesOff = resolved != null && resolved.settings().mode() == Mode.OFF && found.settings().mode() != Mode.OFF;
      timesOffEnded += leavesOff ? 1 : 0; // first: under the new mode no barrier may pass a scope that is not marked
      code = said;
      install(found);
      timesOffEnded += leavesOff ? 1 : 0; // what was opened meanwhile
      return found.settings();
    }
  }

  /** Forgets what code has said, and reads the environment again at the next look (for tests). */
  public static void reset() {
    synchronized (LOCK) {
      code = Settings.defaults();
      resolved = null;
      generation++;
    }
  }

  /** Reads this from now on, and not the process's environment (for tests); null: that again. */
  public static void environment(Map<String, String> variables) {
    synchronized (LOCK) {
      environment = variables == null ? System::getenv : () -> variables;
      resolved = null;
      generation++;
    }
  }

  /** Every setting in force and where it came from. */
  public static List<Origin> origins() {
    ResolvedSettings now = now();
    List<Origin> origins = new ArrayList<>();
    for (Setting setting : Setting.values()) {
      Object value = now.settings().said(setting);
      origins.add(new Origin(setting, value == null ? setting.initial() : value, now.origins().get(setting)));
    }
    return origins;
  }

  /** The variables that are set and do nothing, each with a hint at the nearest known one, or an empty one (CONF-4). */
  public static Map<String, String> unknownVariables() {
    return now().unknown();
  }

  /** What variables say of one store (CONF-10). */
  public static StoreSettings ofStore(String store) {
    Map<String, StoreSettings> stores = now().stores(); // empty mostly: a barrier asks for every store
    return stores.isEmpty() ? StoreSettings.NONE : stores.getOrDefault(Resolver.variableName(store), StoreSettings.NONE);
  }

  /** The variable that holds a store's replicas: {@code ANTIPODE_STORE_BLOG_POSTS_REPLICAS} (CONF-10). */
  public static String replicasVariable(String store) {
    return Kind.PREFIX + "STORE_" + Resolver.variableName(store) + "_REPLICAS";
  }

  /**
   * The deadline where a call has none: store option, code, the store's variable, environment, default (CONF-1).
   *
   * @param store the store's name; null for the process as a whole
   * @param option the store option; null where it has none
   */
  public static Duration timeoutOf(String store, Duration option) {
    if (option != null) {
      return (Duration) Setting.TIMEOUT.check(option);
    }
    ResolvedSettings now = now();
    if (store == null || now.code().said(Setting.TIMEOUT) != null) {
      return now.settings().timeout();
    }
    return ofStore(store).timeout().orElse(now.settings().timeout());
  }

  /** The mode of one store: the most careful of process, store's variable and store option (null: none); CONF-5. */
  public static Mode modeOf(String store, Mode option) {
    Mode mode = inForce().mode();
    Optional<Mode> own = ofStore(store).mode();
    mode = own.isPresent() ? mode.orMoreCareful(own.get()) : mode;
    return option == null ? mode : mode.orMoreCareful(option);
  }

  private static ResolvedSettings now() {
    ResolvedSettings now = resolved;
    if (now != null) {
      return now;
    }
    synchronized (LOCK) {
      return resolved != null ? resolved : install(Resolver.resolve(code, environment.get()));
    }
  }

  private static ResolvedSettings install(ResolvedSettings found) {
    resolved = found;
    generation++;
    found.unknown().forEach((name, hint) ->
        Logs.warn("AP302", "variable " + name, "the variable " + name + " is not known and does nothing." + hint));
    return found;
  }

  /** All that comes of one look at code and environment. */
  record ResolvedSettings(
      Settings settings,
      Settings code,
      Map<Setting, String> origins,
      Map<String, StoreSettings> stores,
      Map<String, String> unknown) {}
}
