package dev.antipode.internal.diagnostics.telemetry;

import dev.antipode.Mode;
import dev.antipode.Settings;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.diagnostics.dryrun.Records;
import dev.antipode.internal.store.Registry;
import dev.antipode.observer.Observer;
import dev.antipode.shim.Logs;
import dev.antipode.shim.RegisteredStore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;

/** One line a process that says what is in force: mode, region, stores, trust, records (OBS-8). */
public final class Announcement implements Observer {
  private static final AtomicBoolean TOLD = new AtomicBoolean();

  /** Make one; {@link java.util.ServiceLoader} does. */
  public Announcement() {}

  /** Log the line at the first barrier or request of the process; later calls cost a look at a flag. */
  @Override
  public void onWorkBegun() {
    if (!TOLD.get() && TOLD.compareAndSet(false, true)) {
      Telemetry.start();
      Logs.info("", "in force", inForce());
      if (ProcessSettings.inForce().mode() == Mode.DRY_RUN) {
        Records.start();
      }
    }
  }

  /** What is in force: {@code mode=enforce region=b stores=blog-posts(redis, 2 replicas) trust=private}. */
  private static String inForce() {
    Settings now = ProcessSettings.inForce();
    String stores = Registry.current().all().stream().map(Announcement::words).collect(Collectors.joining(","));
    String line = "mode=%s region=%s stores=%s trust=%s".formatted(now.mode(), orDash(now.region()), orDash(stores), now.trust());
    if (now.edge()) {
      line += " edge=true";
    }
    return now.mode() == Mode.DRY_RUN ? line + " records=" + now.records() + "/" : line;
  }

  private static String orDash(String text) {
    return text.isEmpty() ? "-" : text;
  }

  private static String words(RegisteredStore store) {
    int count = store.replicas().size();
    String replicas = count == 0 ? "" : ", " + count + (count == 1 ? " replica" : " replicas");
    return store.name() + "(" + store.kind() + replicas + ")";
  }

  /** Forgets that it was told (tests). */
  public static void reset() {
    TOLD.set(false);
  }
}
