package dev.antipode.internal.trust;

import dev.antipode.Forwarded;
import dev.antipode.Keys;
import dev.antipode.Settings;
import dev.antipode.Trust;
import dev.antipode.internal.base.ProcessSettings;
import java.time.Duration;

/**
 * The settings of trust, as they are judged by (TRUST-2, TRUST-16).
 *
 * @param trust whose lineages are taken
 * @param edge whether the outside can reach this service
 * @param ignoreForwarded whether only the peer is judged, and no forwarding header
 * @param trustUnix whether a request without a peer came by a Unix socket
 * @param peers hosts that lineages may go to, beside those inside
 * @param keys the seal keys
 * @param sealTtl how long the seal of a request or response holds
 * @param sealRestTtl how long that of a message or value does; zero: without end
 */
public record TrustSettings(
    Trust trust,
    boolean edge,
    boolean ignoreForwarded,
    boolean trustUnix,
    Peers peers,
    Keys keys,
    Duration sealTtl,
    Duration sealRestTtl) {

  private static volatile CachedSettings cached;

  private record CachedSettings(int generation, TrustSettings settings) {}

  /** What these settings say of trust. */
  public static TrustSettings of(Settings settings) {
    return new TrustSettings(
        settings.trust(),
        settings.edge(),
        settings.forwarded() == Forwarded.IGNORE,
        settings.trustUnix(),
        Peers.of(settings.peers()),
        settings.keys(),
        settings.sealTtl(),
        settings.sealRestTtl());
  }

  /** What the process's settings say of trust; made anew only when they change. */
  public static TrustSettings inForce() {
    Settings now = ProcessSettings.inForce(); // looked at first: the first look counts as a change
    int generation = ProcessSettings.generation();
    CachedSettings known = cached;
    if (known == null || known.generation() != generation) {
      known = new CachedSettings(generation, of(now));
      cached = known;
    }
    return known.settings();
  }

  /** These, with what one middleware was told; an edge that the operator declared stays one. */
  public TrustSettings atEdge(boolean declared) {
    return declared && !edge
        ? new TrustSettings(trust, true, ignoreForwarded, trustUnix, peers, keys, sealTtl, sealRestTtl)
        : this;
  }

  /** Return how long seals of this purpose hold; zero: without end (TRUST-21). */
  public Duration lifeOf(Purpose purpose) {
    return purpose.mayRest() ? sealRestTtl : sealTtl;
  }

  /** How many bytes a seal adds to what leaves. */
  public int sealLength() {
    return trust == Trust.KEY ? keys.sealLength() : 0;
  }
}
