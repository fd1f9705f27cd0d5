package dev.antipode.redis;

import dev.antipode.Ordered;
import dev.antipode.Rest;
import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.Watch;
import java.io.IOException;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What knows Redis: judges positions at a server, and hears of changes by client-side tracking. A position's epoch is the
 * first 16 hex digits of the replication id, its counter the offset.
 */
public final class RedisShim extends Shim {
  private static final Capabilities CAPABILITIES = Capabilities.positions()
      .push(true)
      .tombstones(true)
      .rest(Rest.FIELD, Rest.ENVELOPE)
      .marks(Capabilities.Marks.IN_BAND);

  private static final int NAMING_MILLIS = 1000;
  private static final Set<String> LOGIN = Set.of("NOAUTH", "WRONGPASS");

  private final Map<String, Marker> markers = new ConcurrentHashMap<>();

  /** Found by ServiceLoader, too. */
  public RedisShim() {}

  @Override
  public String kind() {
    return "redis";
  }

  @Override
  public boolean notesReads() {
    return true;
  }

  @Override
  public Capabilities capabilities() {
    return CAPABILITIES;
  }

  @Override
  public Set<String> schemes() {
    return Set.of("redis", "rediss");
  }

  @Override
  public String address(Object target) {
    return Target.of(target).address();
  }

  @Override
  public Callable<? extends Collection<?>> naming(Object target) {
    Target wanted = Target.of(target);
    return wanted.moves() ? () -> wanted.naming().servers(NAMING_MILLIS) : null;
  }

  /** The key of the hash of marks. */
  String marksKey() {
    return store().options().extra(Marks.OPTION) instanceof String key ? key : Marks.DEFAULT_KEY;
  }

  /** The one that marks this store's epochs at a server: one a process. */
  Marker marker(Target target) {
    return markers.computeIfAbsent(
        target.address(), address -> Marker.of(store().name(), target, marksKey()));
  }

  @Override
  public void forget() {
    markers.values().forEach(Marker::stop);
  }

  @Override
  public List<Visibility> visible(List<WriteId> ids, Server server) throws Exception {
    Session session = session(server);
    List<String> epochs = ids.stream()
        .filter(id -> id.isPosition() && id.version() instanceof Ordered)
        .map(id -> ((Ordered) id.version()).epoch())
        .distinct()
        .sorted()
        .toList();
    ServerState seen;
    try {
      seen = session.look(epochs, marksKey());
    } catch (ServerError error) {
      if (!error.code().equals("NOPERM")) {
        throw error;
      }
      String words = "its user may not ask where it is (" + error.getMessage() + "). " + Facts.grant(marksKey());
      return all(ids, Visibility.unproven(words, UnprovenKind.RIGHT));
    }
    if (session.cluster()) {
      return all(ids, Visibility.unproven("it " + Facts.CLUSTER, UnprovenKind.UNFIT));
    }
    server.applied(session.runId(), seen.replication().epoch(), seen.proved());
    return ids.stream().map(seen::judge).toList();
  }

  private static List<Visibility> all(List<WriteId> ids, Visibility answer) {
    return Collections.nCopies(ids.size(), answer);
  }

  @Override
  public UnprovenKind kindOf(Exception error) {
    boolean isLogin = error instanceof ServerError refused && LOGIN.contains(refused.code());
    return isLogin ? UnprovenKind.CONNECTION : UnprovenKind.OTHER;
  }

  @Override
  public Watch watch(Server server) throws Exception {
    Session session = session(server);
    try {
      session.track(new Session.Listener() {
        @Override
        public void changed() {
          server.changed();
        }

        @Override
        public void reset() {
          server.reset();
        }

        @Override
        public void broken(Exception error) {
          server.broken(error);
        }
      });
    } catch (ServerError error) {
      throw new UnsupportedOperationException(
          "client-side tracking is not to be had there (" + error.getMessage() + ")", error);
    }
    return session::close;
  }

  @Override
  public void close(Server server) {
    Object session = server.session();
    server.session(null);
    if (session instanceof Session open) {
      open.close();
    }
  }

  @Override
  public boolean renews() {
    return true;
  }

  @Override
  public Session renew(Server server) throws IOException, ServerError {
    return new Session(Target.of(server.target()), millis(server));
  }

  @Override
  public boolean unreachable(Exception error) {
    return error instanceof IOException;
  }

  private Session session(Server server) throws IOException, ServerError {
    if (server.session() instanceof Session open) {
      open.timeout(millis(server));
      return open;
    }
    Session made = renew(server);
    server.session(made);
    return made;
  }

  private static int millis(Server server) {
    return (int) Math.max(1, server.askTimeout().toMillis());
  }
}
