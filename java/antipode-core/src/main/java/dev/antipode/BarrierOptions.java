package dev.antipode;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executor;

/**
 * What one barrier asks for; immutable. What is not said is as the settings have it.
 *
 * <p>{@code BarrierOptions.defaults().timeout(ofMillis(500)).stores("blog-posts").onTimeout(PROCEED)}
 *
 * @param lineage the lineage to wait for; null for the current scope's, as it is at the call (BAR-1)
 * @param timeout the deadline, tightened by the request's own; zero looks without waiting; null for the setting's
 * @param stores those alone; null for all that this process has registered (BAR-3, BAR-4)
 * @param reach how far a pass has to hold; null for {@link Reach#REGION}
 * @param requireComplete whether to fail also where something was left unjudged (BAR-44)
 * @param dryRun whether only to look and record, for this call
 * @param onTimeout what happens where a write is not visible in time; null for the setting
 * @param onUnproven what happens where no proof is possible; null for the setting
 * @param onVacuous what happens where nothing could be judged; null for the setting
 * @param executor runs what depends on the future of {@code barrierAsync}; null for Antipode's own few threads, on which
 *     nothing may block
 */
public record BarrierOptions(
    Lineage lineage,
    Duration timeout,
    List<String> stores,
    Reach reach,
    boolean requireComplete,
    boolean dryRun,
    Policy onTimeout,
    Policy onUnproven,
    Policy onVacuous,
    Executor executor) {
  private static final BarrierOptions DEFAULTS =
      new BarrierOptions(null, null, null, null, false, false, null, null, null, null);

  /**
   * Makes values of their own of the lists.
   *
   * @throws ConfigurationException for a timeout that is negative or above one hour
   */
  public BarrierOptions {
    if (timeout != null) {
      checkTimeout(timeout);
    }
    stores = stores == null ? null : List.copyOf(stores);
  }

  /** A deadline is from 0 to one hour (BAR-58). */
  static void checkTimeout(Duration timeout) {
    if (timeout.isNegative() || timeout.compareTo(Duration.ofHours(1)) > 0) {
      throw new ConfigurationException("AP109", "timeout(" + timeout + "): want a duration from 0 to one hour");
    }
  }

  /** The current scope's lineage, all registered stores, and everything else as set. */
  public static BarrierOptions defaults() {
    return DEFAULTS;
  }

  /** The same, for a given lineage instead of the scope's. */
  public BarrierOptions lineage(Lineage value) {
    return new BarrierOptions(
        value, timeout, stores, reach, requireComplete, dryRun, onTimeout, onUnproven, onVacuous, executor);
  }

  /**
   * The same, with this deadline; zero looks without waiting.
   *
   * @throws ConfigurationException for null or a negative one: there is no infinite wait to ask for
   */
  public BarrierOptions timeout(Duration value) {
    if (value == null) {
      throw new ConfigurationException("AP109", "timeout(null): there is no infinite wait to ask for; give a duration");
    }
    return new BarrierOptions(
        lineage, value, stores, reach, requireComplete, dryRun, onTimeout, onUnproven, onVacuous, executor);
  }

  /** The same, for these stores alone. */
  public BarrierOptions stores(String... names) {
    return stores(List.of(names));
  }

  /** The same, for these stores alone. */
  public BarrierOptions stores(List<String> names) {
    return new BarrierOptions(
        lineage, timeout, names, reach, requireComplete, dryRun, onTimeout, onUnproven, onVacuous, executor);
  }

  /** The same, with this reach. */
  public BarrierOptions reach(Reach value) {
    return new BarrierOptions(
        lineage, timeout, stores, value, requireComplete, dryRun, onTimeout, onUnproven, onVacuous, executor);
  }

  /** The same, failing also where something was left unjudged, or not. */
  public BarrierOptions requireComplete(boolean value) {
    return new BarrierOptions(
        lineage, timeout, stores, reach, value, dryRun, onTimeout, onUnproven, onVacuous, executor);
  }

  /** The same, only looking and recording, or as the settings say. */
  public BarrierOptions dryRun(boolean value) {
    return new BarrierOptions(
        lineage, timeout, stores, reach, requireComplete, value, onTimeout, onUnproven, onVacuous, executor);
  }

  /** The same, with this policy for what is not visible in time. */
  public BarrierOptions onTimeout(Policy value) {
    return new BarrierOptions(
        lineage, timeout, stores, reach, requireComplete, dryRun, value, onUnproven, onVacuous, executor);
  }

  /** The same, with this policy for what cannot be proved. */
  public BarrierOptions onUnproven(Policy value) {
    return new BarrierOptions(
        lineage, timeout, stores, reach, requireComplete, dryRun, onTimeout, value, onVacuous, executor);
  }

  /** The same, with this policy for a barrier that could judge nothing. */
  public BarrierOptions onVacuous(Policy value) {
    return new BarrierOptions(
        lineage, timeout, stores, reach, requireComplete, dryRun, onTimeout, onUnproven, value, executor);
  }

  /** The same, with what depends on the future running on this executor. */
  public BarrierOptions executor(Executor value) {
    return new BarrierOptions(
        lineage, timeout, stores, reach, requireComplete, dryRun, onTimeout, onUnproven, onVacuous, value);
  }
}
