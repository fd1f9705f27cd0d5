package dev.antipode.internal.engine;

import dev.antipode.UnprovenKind;
import dev.antipode.internal.model.Display;
import dev.antipode.internal.store.Registry;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Visibility;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Registered stores of which a name of a lineage's may be a misspelling: it differs in case, - and _ only (BAR-6). */
public final class Twins {
  private static final int MOST_NAMES = 1024;
  private static final Map<String, CheckedTwins> CHECKED = new ConcurrentHashMap<>(); // by the lineage's name

  /** The twins of a name in one generation of the registry. */
  private record CheckedTwins(long generation, List<String> names) {}

  private Twins() {}

  /** Return the names of the registered stores of which this name, which is not registered, may be a misspelling. */
  public static List<String> of(String name, Registry known) {
    long generation = known.generation();
    CheckedTwins checked = CHECKED.get(name);
    if (checked != null && checked.generation() == generation) {
      return checked.names();
    }
    String plain = plain(name);
    List<String> names = known.all().stream()
        .map(RegisteredStore::name).filter(each -> plain(each).equals(plain)).sorted().toList();
    if (CHECKED.size() >= MOST_NAMES) {
      CHECKED.clear();
    }
    CHECKED.put(name, new CheckedTwins(generation, names));
    return names;
  }

  /** Return the answer for entries under a misspelt name: unproven, with both names. */
  public static Visibility misspelt(String name, String twin) {
    return Visibility.unproven(
        "the lineage names store \"%s\", this process has registered \"%s\": the same name but for case, - and _"
            .formatted(Display.shown(name), twin),
        UnprovenKind.MISSPELT);
  }

  private static String plain(String name) {
    return name.toUpperCase(Locale.ROOT).toLowerCase(Locale.ROOT).replace("-", "").replace("_", "");
  }
}
