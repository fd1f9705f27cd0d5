package dev.antipode.redis;

import dev.antipode.StoreOptions;
import dev.antipode.UnfitStoreException;
import dev.antipode.shim.Logs;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shims;
import java.io.IOException;

/** What wrapping a client does, whatever client it is: checks, asks the server, joins the store (SHIM-3). */
final class ClientWrapper {
  private static final int PROBE_MILLIS = 1000;

  private ClientWrapper() {}

  /**
   * The tie of a client that connects to this target to its store.
   *
   * @throws dev.antipode.ConfigurationException for options that cannot be
   * @throws UnfitStoreException for a server of a Redis Cluster. One that does not answer now is no error
   */
  static Binding bind(Target target, StoreOptions options) {
    LineagePlacement beside = LineagePlacement.of(options);
    Facts facts = probe(target, options);
    if (facts.cluster() && options.onUnfit() == StoreOptions.OnUnfit.RAISE) {
      throw new UnfitStoreException(
          target.address() + " " + Facts.CLUSTER + ". onUnfit(UNPROVEN) lets the service start");
    }
    RegisteredStore joined = Shims.find(options.name());
    if (joined != null && joined.shim() instanceof RedisShim) { // a wrap that is refused changes nothing
      joined.agreeOnEnvelopes(options.envelopeKeys());
    }
    RegisteredStore store = Shims.join(options, RedisShim::new);
    store.agreeOnEnvelopes(options.envelopeKeys());
    Server server = store.useServer(options, target, target.address());
    Marker marker = ((RedisShim) store.shim()).marker(target);
    if (facts.reached()) {
      marker.facts(facts);
    }
    return new Binding(store, options, beside, target, server, marker);
  }

  /** Asks the server what it allows; what cannot be reached now is asked when it can. */
  private static Facts probe(Target target, StoreOptions options) {
    String key = options.extra(Marks.OPTION) instanceof String named ? named : Marks.DEFAULT_KEY;
    try (Session session = new Session(target, PROBE_MILLIS)) {
      return Facts.probe(session, options.name(), key);
    } catch (IOException error) {
      Logs.info(
          "AP507",
          "probe " + options.name() + " " + target.address(),
          options.name() + ": " + target.address() + " does not answer yet (" + error.getMessage()
              + "); its rights are asked when it does");
      return Facts.UNKNOWN;
    } catch (ServerError error) { // LOADING, a restart just now: asked again by the marker
      return Facts.UNKNOWN;
    }
  }
}
