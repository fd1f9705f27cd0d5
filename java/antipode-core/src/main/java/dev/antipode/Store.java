package dev.antipode;

import dev.antipode.shim.Capabilities;
import java.time.Duration;
import java.util.List;

/** A datastore that this process has registered. */
public interface Store {
  /** Its logical name, the same in every service and region. */
  String name();

  /** The kind of store: {@code redis}, {@code memory}. */
  String kind();

  /** What its shim can do. */
  Capabilities capabilities();

  /** The addresses of the servers that a pass with reach {@code region} speaks of. */
  List<String> replicas();

  /** Enforce, dry-run or off for this store: the most careful of what was said (BAR-49). */
  Mode mode();

  /** The deadline of a barrier on this store alone where the call has none (BAR-28). */
  Duration timeout();
}
