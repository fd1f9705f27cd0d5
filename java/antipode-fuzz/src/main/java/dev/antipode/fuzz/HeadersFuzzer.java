package dev.antipode.fuzz;

import dev.antipode.Lineage;
import dev.antipode.internal.trust.Addresses;
import dev.antipode.propagation.HeaderCarrier;
import dev.antipode.propagation.Propagation;
import dev.antipode.propagation.RequestScope;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Headers from outside: whatever they hold, a request's scope opens, and what leaves again can be read. */
public final class HeadersFuzzer {
  private static final Logger LOGGER = Logger.getLogger("dev.antipode");
  private static final List<String> NAMES =
      List.of("baggage", "antipode-lineage", "uberctx-antipode", "forwarded", "x-forwarded-for", "uber-trace-id");

  static {
    LOGGER.setLevel(Level.OFF);
  }

  private HeadersFuzzer() {}

  /** Lines of which the first character says the name. */
  public static void fuzzerTestOneInput(byte[] data) {
    String input = new String(data, StandardCharsets.ISO_8859_1);
    Map<String, List<String>> headers = new LinkedHashMap<>();
    for (String line : input.split("\n", 64)) {
      if (!line.isEmpty()) {
        headers.computeIfAbsent(NAMES.get(line.charAt(0) % NAMES.size()), name -> new ArrayList<>()).add(line.substring(1));
      }
    }
    Addresses.isPrivatePeer(input, false);
    HeaderCarrier carrier = HeaderCarrier.ofLists(headers);
    Lineage left;
    try (RequestScope request = Propagation.extractRequest(carrier, "127.0.0.1")) {
      left = request.scope().lineage();
      Propagation.injectRequest(carrier, "inside");
    }
    headers.remove("forwarded");
    headers.remove("x-forwarded-for");
    try (RequestScope next = Propagation.extractRequest(carrier, "127.0.0.1")) {
      Expect.that(left.isEmpty() || next.scope().lineage().equals(left.fit(1024)), "what leaves comes in again");
    }
  }
}
