package dev.antipode.postgresql;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import org.postgresql.core.BaseConnection;

/** What one connection has found out about its server; shared by all wraps of the connection. */
final class Known {
  private static final Map<BaseConnection, Known> ALL = Collections.synchronizedMap(new WeakHashMap<>());

  /** How long a segment of the log is; 0 until it was asked for. */
  long segment;

  long timeline;

  /** Of {@link #timeline}; empty until it was asked for. */
  String epoch = "";

  private Known() {}

  /** That of the driver's own connection. */
  static Known of(BaseConnection physical) {
    return ALL.computeIfAbsent(physical, first -> new Known());
  }
}
