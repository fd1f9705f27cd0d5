package dev.antipode.internal.base;

import dev.antipode.Mode;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * What the environment says of one store (CONF-10).
 *
 * @param replicas addresses of its servers here
 * @param primary address of its primary
 * @param timeout its deadline
 * @param mode its mode
 */
public record StoreSettings(
    Optional<List<String>> replicas, Optional<String> primary, Optional<Duration> timeout, Optional<Mode> mode) {
  /** Nothing is said. */
  public static final StoreSettings NONE =
      new StoreSettings(Optional.empty(), Optional.empty(), Optional.empty(), Optional.empty());
}
