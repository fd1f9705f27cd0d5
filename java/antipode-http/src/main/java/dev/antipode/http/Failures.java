package dev.antipode.http;

import java.net.ConnectException;
import java.net.UnknownHostException;
import java.net.http.HttpConnectTimeoutException;
import java.nio.channels.UnresolvedAddressException;

/** Which calls failed before anything was sent (PROP-27). */
final class Failures {
  private static final int MOST_CAUSES = 10;

  private Failures() {}

  /** Whether there was no connection, or nothing to connect to. */
  static boolean neverLeft(Throwable error) {
    Throwable each = error;
    for (int depth = 0; each != null && depth < MOST_CAUSES; depth++) {
      if (each instanceof ConnectException
          || each instanceof UnknownHostException
          || each instanceof HttpConnectTimeoutException
          || each instanceof UnresolvedAddressException
          || each instanceof IllegalArgumentException) {
        return true;
      }
      each = each.getCause();
    }
    return false;
  }
}
