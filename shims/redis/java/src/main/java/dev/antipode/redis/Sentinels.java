package dev.antipode.redis;

import java.io.IOException;
import java.util.List;
import java.util.stream.Collectors;

/**
 * The Sentinels of one service, as our own connections ask them.
 *
 * @param service its name
 * @param places where they are
 */
record Sentinels(String service, List<Target> places) {
  /** What they are asked for, as the address of a target that leads to whoever is the primary. */
  String address(int database) {
    String names = places.stream()
        .map(place -> place.address().substring(place.address().indexOf("://") + "://".length()))
        .sorted()
        .collect(Collectors.joining(","));
    return "sentinel://" + names + "/" + service + "/primary" + Target.suffix(database);
  }

  /** A host and a port. */
  record Place(String host, int port) {}

  /** Return where the primary is now, as the first Sentinel says that knows it; throws where none does. */
  Place primary(int timeoutMillis) throws IOException {
    IOException last = new IOException("no Sentinel is known");
    for (Target sentinel : places) {
      try (Session session = new Session(sentinel, timeoutMillis)) {
        Object reply = session.command("SENTINEL", "get-master-addr-by-name", service);
        if (reply instanceof List<?> place && place.size() == 2) {
          return new Place(Resp.text(place.get(0)), Integer.parseInt(Resp.text(place.get(1))));
        }
        last = new IOException(sentinel.address() + " knows no " + service);
      } catch (ServerError error) {
        last = new IOException(error);
      } catch (IOException error) {
        last = error;
      }
    }
    throw last;
  }
}
